import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { TranscriptEntry } from '#contracts/entry.js'
import type { JsonObject } from '#util/json.js'
import { requestAt } from '../../finding/request.js'
import type { RequestView } from '../../finding/request.js'
import { memberOf } from '../../reading/event-fields.js'
import type { TurnNode } from '../../reading/nodes.js'
import { CallPanel } from './call-panel.js'
import { Facts, Section } from './section.js'
import { clockOf } from './entry-row.js'
import { IconButton } from '../text/icon-button.js'
import { JsonView } from '../text/json-tree.js'
import { Content, Entry } from '../text/entry-content.js'
import type { Row } from '../list/rows.js'
import { RowLabel, kindOf } from '../list/step-row.js'
import { addressOf } from '../store.js'
import type { Store } from '../store.js'
import { Words, countOf, moneyOf, plainText, timeOf } from '../text/formatted-text.js'

/** Beside the rows: everything about the chosen one. */
export function Panel({ store }: { readonly store: Store }) {
  const row = store.chosenRow ?? store.rows[0]
  const [tab, setTab] = useState('')
  if (row === undefined) return <aside class="panel" aria-label="Details" />
  const tabs = tabsOf(row, store)
  const open = tabs.find(({ name }) => name === tab) ?? tabs[0]
  return (
    <aside class={`panel ${kindOf(row)}`} aria-label="Details">
      <header>
        <h2 class="title">
          <RowLabel row={row} />
        </h2>
        <IconButton icon="copy" label="Copy the event as JSON (y)" onClick={() => void store.copy('json')} />
        <IconButton icon="text" label="Copy the text (Y)" onClick={() => void store.copy('text')} />
        <IconButton icon="link" label="Copy the address of the event" onClick={() => void store.copy('address')} />
        <IconButton icon="close" label="Close the details (d)" onClick={() => store.set({ hasPanel: false })} />
      </header>
      <div class="tabs" role="tablist" aria-label="Details">
        {tabs.map(({ name }) => (
          <button type="button" role="tab" aria-selected={name === open?.name} onClick={() => setTab(name)}>
            {name}
          </button>
        ))}
      </div>
      <div class="scroll" role="tabpanel" tabIndex={0} aria-label={open?.name} key={`${row.key} ${open?.name}`}>
        {open?.show()}
      </div>
    </aside>
  )
}

interface Tab {
  readonly name: string
  readonly show: () => ComponentChildren
}

function tabsOf(row: Row, store: Store): readonly Tab[] {
  const events = { name: 'Events', show: () => <Events row={row} store={store} /> }
  if (row.kind === 'call') return [{ name: 'Call', show: () => <CallPanel call={row.call} store={store} /> }, events]
  if (row.kind === 'prompt') {
    const prompt = () => (
      <Content content={memberOf(store.book.event({ runId: row.run.runId, seq: row.seq }), 'prompt')} isProse />
    )
    return [{ name: 'Prompt', show: () => <Section name="Prompt">{prompt()}</Section> }, events]
  }
  if (row.kind !== 'turn') return [events]
  const { turn } = row
  return [
    { name: 'What the model saw', show: () => <Seen turn={turn} store={store} /> },
    { name: 'Figures', show: () => <TurnFigures turn={turn} /> },
    events,
  ]
}

/** Entries before the new ones that are shown at once. */
const EARLIER = 20

function Seen({ turn, store }: { readonly turn: TurnNode; readonly store: Store }) {
  const [shownFrom, setShownFrom] = useState<number | null>(null)
  const request = requestAt(store.book, turn.runId, turn.index)
  if (request === null) return <p class="quiet">The log does not have this request.</p>
  const { entries, newFrom, difference } = request
  const from = shownFrom ?? newFrom
  return (
    <>
      {request.problem !== null && <p class="bad">{plainText(request.problem)}</p>}
      <Constants request={request} />
      <Section
        name={`${entries.length - newFrom} new of ${entries.length} entries`}
        note={
          <button type="button" class="link" onClick={() => void store.copyPrompt(turn)}>
            Copy the prompt
          </button>
        }
      >
        {difference !== null && (
          <p class="warned">{`Differs from the request before at entry ${difference.entry + 1}: ${plainText(difference.path)}`}</p>
        )}
        {from > 0 && (
          <button type="button" class="more" onClick={() => setShownFrom(Math.max(0, from - EARLIER))}>
            {`Show ${Math.min(from, EARLIER)} earlier ${from === 1 ? 'entry' : 'entries'}`}
          </button>
        )}
        {entries.slice(from, from + 400).map((entry, offset) => (
          <SeenEntry entry={entry} index={from + offset} request={request} />
        ))}
      </Section>
    </>
  )
}

function SeenEntry(props: { readonly entry: TranscriptEntry; readonly index: number; readonly request: RequestView }) {
  const { entry, index, request } = props
  return (
    <>
      {request.difference?.entry === index && <p class="differs">differs from here on</p>}
      {request.difference === null && index === request.newFrom && index > 0 && (
        <p class="differs same">new from here on</p>
      )}
      <div class={`box ${index >= request.newFrom ? 'new' : ''}`}>
        <Entry entry={entry as unknown as JsonObject} />
      </div>
    </>
  )
}

/** Instructions and tools: the log has their digests, which say whether they changed. */
function Constants({ request }: { readonly request: RequestView }) {
  const tools = Object.keys(request.tools ?? {})
  const changed = new Set(request.changed)
  return (
    <Section name="Sent with it">
      <Facts
        facts={[
          ['Changed', changed.size > 0 && <span class="tag warn">{plainText([...changed].join(', '))}</span>],
          ['Instructions', request.instructions !== null && <code>{request.instructions}</code>],
          [
            'Tools',
            tools.length > 0 && (
              <span class="names">
                {tools.map((name) => (
                  <span class={`tag ${changed.has(name) ? 'warn' : ''}`}>{plainText(name)}</span>
                ))}
              </span>
            ),
          ],
          ['Added to the prompt', request.promptAddition !== null && <Words text={request.promptAddition} />],
        ]}
      />
    </Section>
  )
}

function TurnFigures({ turn }: { readonly turn: TurnNode }) {
  const { tokens } = turn
  return (
    <>
      <Section name="Request">
        <Facts
          facts={[
            ['Kind', plainText(turn.requestKind.replaceAll('_', ' '))],
            ['Model', plainText(turn.model)],
            ['Sent', clockOf(turn.startedAt)],
            ['First words', turn.firstDeltaAt !== null && timeOf(turn.firstDeltaAt - turn.startedAt)],
            ['Reply', turn.repliedAt !== null && timeOf(turn.repliedAt - turn.startedAt)],
            ['Finished', plainText(turn.finishReason ?? '')],
            ['Meaning', plainText(turn.resolution?.replaceAll('_', ' ') ?? '')],
            ['Last one', plainText(turn.closing ?? '')],
            ['Cost', turn.costUsd !== null && moneyOf(turn.costUsd)],
          ]}
        />
      </Section>
      {tokens !== null && (
        <Section name="Tokens">
          <Facts
            facts={[
              ['In', countOf(tokens.input)],
              [
                'From the cache',
                `${countOf(tokens.cached)} (${Math.round((tokens.cached / (tokens.input || 1)) * 100)}%)`,
              ],
              ['Into the cache', countOf(tokens.cacheWrite)],
              ['Out', countOf(tokens.output)],
              ['Reasoning', tokens.reasoning > 0 && countOf(tokens.reasoning)],
            ]}
          />
        </Section>
      )}
      {turn.attempts.length > 0 && (
        <Section name="Failed attempts">
          {turn.attempts.map(({ model, failure, status, ms, withdrawn }) => (
            <div class="box">
              <Facts
                facts={[
                  ['Model', plainText(model)],
                  ['Failure', plainText(failure ?? '')],
                  ['Status', status],
                  ['Took', timeOf(ms)],
                  ['Its words', withdrawn && 'withdrawn'],
                ]}
              />
            </div>
          ))}
        </Section>
      )}
    </>
  )
}

/** The stored events of a row, as they are in the log. */
function Events({ row, store }: { readonly row: Row; readonly store: Store }) {
  return (
    <>
      {seqsOf(row).map((seq) => {
        const event = store.book.event({ runId: row.run.runId, seq })
        if (event === null) return null
        return (
          <Section
            key={seq}
            name={event.kind}
            note={<a href={addressOf({ runId: row.run.runId, seq })}>{`#${seq}`}</a>}
          >
            <JsonView value={event} />
          </Section>
        )
      })}
    </>
  )
}

/** The numbers of the events that a row shows. */
function seqsOf(row: Row): readonly number[] {
  switch (row.kind) {
    case 'turn':
      return [row.turn.seq, row.turn.replySeq ?? row.turn.seq].filter((seq, index, all) => all.indexOf(seq) === index)
    case 'call':
      return [...row.call.starts, ...row.call.waits.map(({ seq }) => seq), row.call.endSeq ?? 0].filter(
        (seq) => seq > 0,
      )
    case 'run':
      return [row.run.promptSeq, row.run.lastSeq]
    case 'prompt':
    case 'mark':
    case 'pause':
      return [row.seq]
  }
}
