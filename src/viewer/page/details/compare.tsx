import type { ComponentChildren } from 'preact'
import { useMemo, useState } from 'preact/hooks'
import { compareRuns, wordChanges } from '../../finding/compare.js'
import type { ComparedTurn } from '../../finding/compare.js'
import { totalsOf } from '../../finding/series.js'
import type { Book } from '../../reading/book.js'
import { objectAt, objectsAt, textAt } from '../../reading/event-fields.js'
import type { RunNode, TurnNode } from '../../reading/nodes.js'
import type { Store } from '../store.js'
import { beginning, countOf, moneyOf, plainText, timeOf } from '../text/formatted-text.js'

interface CompareViewProps {
  readonly store: Store
  readonly left: RunNode
  readonly right: RunNode
}

/** Two runs side by side: their totals, and turn by turn what is the same, what changed, and what only one of them has. */
export function CompareView({ store, left, right }: CompareViewProps) {
  const { book } = store
  const rows = useMemo(() => compareRuns(book, left.runId, right.runId), [left, right, book.version])
  const [showsAll, setShowsAll] = useState(false)
  const groups = useMemo(() => (showsAll ? rows.map((row) => [row]) : grouped(rows)), [rows, showsAll])
  const differing = rows.filter(({ kind }) => kind !== 'same' && kind !== 'common').length
  return (
    <main class="compare" tabIndex={0} aria-label="Comparison of two runs">
      <p class="who">
        <b>{`${differing} of ${rows.length} turns differ`}</b>
        <button type="button" aria-pressed={showsAll} onClick={() => setShowsAll(!showsAll)}>
          Show equal turns
        </button>
        <button type="button" onClick={() => store.set({ compared: null })}>
          Close
        </button>
      </p>
      <table>
        <thead>
          <tr>
            <th scope="col" class="kindcell">
              <span class="sr">Difference</span>
            </th>
            {[left, right].map((run) => (
              <th scope="col">
                <button type="button" class="link mono" onClick={() => store.showRuns([run.runId])}>
                  {plainText(run.runId)}
                </button>
                <Totals run={run} />
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {groups.map((group) => {
            const [row] = group
            if (row === undefined) return null
            return group.length > 1 ? (
              <EqualTurns group={group} />
            ) : (
              <TurnRow key={keyOfTurns(row)} row={row} store={store} />
            )
          })}
        </tbody>
      </table>
    </main>
  )
}

function keyOfTurns({ left, right }: ComparedTurn): string {
  return `${left?.index ?? ''}:${right?.index ?? ''}`
}

/** Equal turns that follow each other in one group; every other turn alone. */
function grouped(rows: readonly ComparedTurn[]): readonly (readonly ComparedTurn[])[] {
  const groups: ComparedTurn[][] = []
  for (const row of rows) {
    const last = groups.at(-1)
    const isEqual = row.kind === 'same' || row.kind === 'common'
    if (isEqual && last?.[0]?.kind === row.kind) last.push(row)
    else groups.push([row])
  }
  return groups
}

function EqualTurns({ group }: { readonly group: readonly ComparedTurn[] }) {
  return (
    <tr class="same">
      <td class="kindcell">
        <span class="tag">{group[0]?.kind === 'common' ? 'common' : 'equal'}</span>
      </td>
      <td
        colSpan={2}
      >{`${group.length} turns: ${group[0]?.left?.index ?? ''} to ${group.at(-1)?.left?.index ?? ''}`}</td>
    </tr>
  )
}

function Totals({ run }: { readonly run: RunNode }) {
  const { workMs, turns, calls, failedCalls, input, output, costUsd } = totalsOf(run)
  return (
    <div class="quiet">
      {[
        run.state,
        `${turns} turns`,
        `${calls} calls${failedCalls > 0 ? `, ${failedCalls} failed` : ''}`,
        `${countOf(input)} → ${countOf(output)} tokens`,
        timeOf(workMs),
        ...(costUsd === null ? [] : [moneyOf(costUsd)]),
      ].join(' · ')}
    </div>
  )
}

const KIND_TAGS = { common: '', same: '', changed: 'warn', added: 'good', removed: 'bad' } as const

function TurnRow({ row, store }: { readonly row: ComparedTurn; readonly store: Store }) {
  const { kind, left, right, differs } = row
  const [before, after] = [left, right].map((turn) => (turn === null ? null : textsOf(store.book, turn)))
  const cell = (turn: TurnNode | null, side: 'removed' | 'added') => (
    <td>
      {turn !== null && (
        <>
          <button
            type="button"
            class="link"
            onClick={() => store.goTo({ runId: turn.runId, seq: turn.seq }, { compared: null })}
          >
            {`Turn ${turn.index}`}
          </button>
          {PARTS.map((part) => (
            <Side
              key={part}
              before={before?.[part] ?? ''}
              after={after?.[part] ?? ''}
              side={side}
              isWhole={kind !== 'changed'}
            />
          ))}
        </>
      )}
    </td>
  )
  return (
    <tr class={kind}>
      <td class="kindcell">
        <span class={`tag ${KIND_TAGS[kind]}`}>{kind === 'same' ? 'equal' : kind}</span>
        {differs.length > 0 && <div class="quiet">{differs.join(', ')}</div>}
      </td>
      {cell(left, 'removed')}
      {cell(right, 'added')}
    </tr>
  )
}

const PARTS = ['text', 'calls', 'results'] as const

/** The text of one side, with what the other side does not have. */
function Side(props: {
  before: string
  after: string
  side: 'removed' | 'added'
  isWhole: boolean
}): ComponentChildren {
  const { side, isWhole } = props
  const [before, after] = [beginning(props.before), beginning(props.after)]
  const own = side === 'removed' ? before : after
  if (own === '') return null
  if (isWhole || before === after) return <pre class="words">{plainText(own)}</pre>
  return (
    <pre class="words">
      {wordChanges(before, after).map(({ text, kind }) => {
        if (kind === 'same') return plainText(text)
        if (kind !== side) return null
        return kind === 'added' ? <ins>{plainText(text)}</ins> : <del>{plainText(text)}</del>
      })}
    </pre>
  )
}

/** What is compared of a turn, as texts. */
function textsOf(book: Book, turn: TurnNode): Readonly<Record<(typeof PARTS)[number], string>> {
  const { runId, replySeq, calls } = turn
  const reply = replySeq === null ? null : book.event({ runId, seq: replySeq })
  const parts = objectsAt(objectAt(reply, 'entry'), 'parts')
  const made = parts.filter((part) => part['type'] === 'tool_call')
  return {
    text: parts.map((part) => (part['type'] === 'text' ? textAt(part, 'text') : '')).join(''),
    calls: made.map((call) => `→ ${textAt(call, 'name')} ${textAt(call, 'arguments')}`).join('\n'),
    results: calls.map(({ toolName, result, state }) => `← ${toolName}: ${result === '' ? state : result}`).join('\n'),
  }
}
