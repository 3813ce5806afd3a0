import type { ComponentChildren } from 'preact'
import { parseJson } from '#util/json.js'
import { structuredAnswer } from '../../finding/answer.js'
import { memberOf, objectAt, objectsAt, textAt } from '../../reading/event-fields.js'
import type { CallNode, TurnNode } from '../../reading/nodes.js'
import { EditView, editsOf } from '../text/edit-view.js'
import { JsonTree, JsonView } from '../text/json-tree.js'
import { Content } from '../text/entry-content.js'
import type { Row } from '../list/rows.js'
import type { Store } from '../store.js'
import { CallTags, Fold, RowLabel, StateTag, durationOf } from '../list/step-row.js'
import { Words, countOf, plainText, timeOf } from '../text/formatted-text.js'

interface EntryProps {
  readonly row: Row
  readonly store: Store
}

/** A row of the conversation: what was said, or done, in full. */
export function EntryBody({ row, store }: EntryProps) {
  switch (row.kind) {
    case 'run':
      return (
        <p class="who">
          <Fold row={row} />
          <RowLabel row={row} />
        </p>
      )
    case 'prompt':
      return (
        <>
          <Who name="Prompt" at={row.run.startedAt} />
          <div class="said">
            <Content content={memberOf(store.book.event({ runId: row.run.runId, seq: row.seq }), 'prompt')} isProse />
          </div>
        </>
      )
    case 'turn':
      return <Reply turn={row.turn} store={store} fold={<Fold row={row} />} />
    case 'call':
      return <CallCard row={row} call={row.call} store={store} />
    case 'mark':
      return (
        <p class="who">
          <RowLabel row={row} />
        </p>
      )
    case 'pause':
      return (
        <p class="who">
          <RowLabel row={row} />
          <span class="quiet">{timeOf(durationOf(row))}</span>
          {row.pause.to === null && <StateTag state="paused" />}
        </p>
      )
  }
}

function Who({
  name,
  at,
  children,
}: {
  readonly name: string
  readonly at: number
  readonly children?: ComponentChildren
}) {
  return (
    <p class="who">
      <b>{name}</b>
      {children}
      <span class="quiet">{clockOf(at)}</span>
    </p>
  )
}

/** The time of day, as the reader's clock shows it. */
export function clockOf(ms: number): string {
  return ms === 0 ? '' : new Date(ms).toLocaleTimeString('en-GB')
}

function Reply({
  turn,
  store,
  fold,
}: {
  readonly turn: TurnNode
  readonly store: Store
  readonly fold: ComponentChildren
}) {
  const request = turn.entries > 0 ? store.book.event({ runId: turn.runId, seq: turn.seq }) : null
  const reply = turn.replySeq === null ? null : store.book.event({ runId: turn.runId, seq: turn.replySeq })
  const { tokens } = turn
  return (
    <>
      {objectsAt(request, 'entries').map((entry) => (
        <div class="extra">
          <Who name={entry['notice'] === true ? 'Notice of the harness' : 'Added'} at={turn.startedAt} />
          <div class="said">
            <Content content={entry['content']} />
          </div>
        </div>
      ))}
      <p class="who">
        {fold}
        <span class="glyph" aria-hidden="true">
          {turn.index}
        </span>
        <b>{`Turn ${turn.index}`}</b>
        <span class="quiet">{plainText(turn.model)}</span>
        <span class="quiet">{timeOf(turn.repliedAt === null ? undefined : turn.repliedAt - turn.startedAt)}</span>
        {tokens !== null && <span class="quiet">{`${countOf(tokens.input)} → ${countOf(tokens.output)} tokens`}</span>}
        {turn.attempts.length > 0 && <span class="tag warn">{`${turn.attempts.length + 1} attempts`}</span>}
        {turn.finishReason !== null && !/^(stop|tool_calls)$/.test(turn.finishReason) && (
          <span class="tag warn">{plainText(turn.finishReason)}</span>
        )}
      </p>
      {turn.blocked !== null && <p class="bad">{`A filter blocked this reply: ${plainText(turn.blocked)}`}</p>}
      {turn.replySeq === null && (
        <p class="quiet">{turn.text === '' ? 'No reply is in the log.' : plainText(turn.text)}</p>
      )}
      <Content content={memberOf(objectAt(reply, 'entry'), 'parts')} isProse />
      <AnswerView turn={turn} store={store} />
    </>
  )
}

/** The structured answer of the run, if it is in this reply: each quotation leads to the place that it quotes. */
function AnswerView({ turn, store }: { readonly turn: TurnNode; readonly store: Store }) {
  const answer = turn.resolution === 'final' ? structuredAnswer(store.book, turn.runId) : null
  if (answer === null || answer.seq !== turn.replySeq) return null
  const note = (path: string) => {
    const evidence = answer.evidence.find((each) => each.path === path)
    if (evidence === undefined) return null
    const { place, source } = evidence
    if (place === null) return <span class="tag">{`${plainText(source)}, not in the log`}</span>
    return (
      <button type="button" class="link evidence" onClick={() => store.goTo(place)}>
        {`quoted from ${plainText(source)}`}
      </button>
    )
  }
  return (
    <div class="box">
      <p class="who">
        <b>Answer</b>
        {answer.mode !== null && <span class="quiet">{plainText(answer.mode)}</span>}
      </p>
      <JsonView value={answer.value} note={note} />
    </div>
  )
}

function CallCard({ row, call, store }: { readonly row: Row; readonly call: CallNode; readonly store: Store }) {
  const at = (seq: number | null) => (seq === null ? null : store.book.event({ runId: call.runId, seq }))
  const [started, ended] = [at(call.starts.at(-1) ?? null), at(call.endSeq)]
  return (
    <div class={`card ${call.state === 'failed' ? 'failed' : ''}`}>
      <header>
        <Fold row={row} />
        <b class="mono">{plainText(call.toolName)}</b>
        <CallTags call={call} />
        <span class="quiet">{timeOf(durationOf(row))}</span>
      </header>
      <div class="inside">
        <Arguments text={textAt(started, 'arguments') || call.argument} />
      </div>
      {ended !== null && (
        <div class="inside">
          {ended['ok'] === true ? (
            <Result output={textAt(ended, 'output')} />
          ) : (
            <Words text={textAt(ended, 'message')} />
          )}
          <Content content={ended['parts'] ?? []} />
        </div>
      )}
    </div>
  )
}

/** Arguments of a call: edits as changed lines, anything else as a tree; text that is no JSON as it is. */
export function Arguments({ text }: { readonly text: string }) {
  const value = jsonIn(text)
  const edits = editsOf(value)
  if (edits.length > 0)
    return (
      <>
        {edits.map((edit) => (
          <EditView edit={edit} />
        ))}
      </>
    )
  if (typeof value !== 'object' || value === null) return <Words text={text} />
  return (
    <div class="json">
      {Object.entries(value).map(([name, member]: [string, unknown]) => (
        <JsonTree name={name} value={member} open={1} />
      ))}
    </div>
  )
}

/** What a call gave: a text as it is, any other value as a tree. */
export function Result({ output }: { readonly output: string }) {
  const envelope = jsonIn(output)
  const content = envelope === undefined ? output : memberOf(envelope, 'content')
  return typeof content === 'string' ? <Words text={content} /> : <JsonView value={content ?? envelope} />
}

/** The value of a JSON text; undefined if it is none. */
export function jsonIn(text: string): unknown {
  const parsed = parseJson(text)
  return parsed.ok ? parsed.value : undefined
}
