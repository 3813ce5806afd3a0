import type { ComponentChildren } from 'preact'
import type { CallNode, Pause, RunNode, TurnNode } from '../../reading/nodes.js'
import type { Row } from './rows.js'
import type { TimeScale } from './scale.js'
import { countOf, plainText, timeOf } from '../text/formatted-text.js'

interface StepRowProps {
  readonly row: Row
  readonly scale: TimeScale
}

/** The cells of a row in the tree of steps: what it is, how long it took, its tokens, and its place in time. */
export function StepCells({ row, scale }: StepRowProps) {
  return (
    <>
      <span class="label">
        {indent(row.depth)}
        <Fold row={row} />
        <RowLabel row={row} />
      </span>
      <span class="figure right">{timeOf(durationOf(row))}</span>
      <span class="figure right tokens">{tokensOf(row)}</span>
      <span class="time" aria-hidden="true">
        {scale.gaps.map((gap) => (
          <i class="gap" style={placed(scale, gap.from, gap.to)} />
        ))}
        {barsOf(row, scale)}
      </span>
    </>
  )
}

function indent(depth: number): ComponentChildren {
  return Array.from({ length: depth }, () => <span class="strip" />)
}

export function Fold({ row }: { readonly row: Row }) {
  if (row.fold === null) return <span class="fold" />
  return (
    <span class="fold" data-fold="" aria-hidden="true" {...(row.fold === 'open' && { 'aria-expanded': 'true' })}>
      <svg viewBox="0 0 10 10">
        <path d="M3 1.5 7 5 3 8.5z" />
      </svg>
    </span>
  )
}

/** The class that gives a row its colour. */
export function kindOf(row: Row): string {
  const kinds = { run: 'child', prompt: 'person', turn: 'turn', call: 'call', mark: 'note', pause: 'person' }
  return `kind-${kinds[row.kind]}${row.isProblem ? ' failed' : ''}`
}

/** What a row is, in words: for the eye as a letter and a colour, for a screen reader as a word. */
export function RowLabel({ row }: { readonly row: Row }) {
  switch (row.kind) {
    case 'run':
      return (
        <>
          <Glyph letter="R" word="Run" />
          <span class="name">{plainText(row.run.agentName ?? row.run.runId)}</span>
          {row.isBackground && <span class="tag">background</span>}
          <StateTag state={row.run.state} />
          <span class="brief">{plainText(row.run.prompt)}</span>
        </>
      )
    case 'prompt':
      return (
        <>
          <Glyph letter="P" word="Prompt" />
          <span class="brief">{plainText(row.run.prompt)}</span>
        </>
      )
    case 'turn':
      return <TurnLabel turn={row.turn} />
    case 'call':
      return (
        <>
          <Glyph letter="ƒ" word="Call" />
          <span class="name">{plainText(row.call.toolName)}</span>
          <CallTags call={row.call} />
          <span class="brief mono">{plainText(plainArgument(row.call.argument))}</span>
        </>
      )
    case 'mark':
      return (
        <>
          <Glyph letter={row.isProblem ? '!' : 'i'} word={row.isProblem ? 'Problem' : 'Note'} />
          <span class={`brief ${row.isProblem ? 'bad' : ''}`}>{plainText(row.mark.text)}</span>
        </>
      )
    case 'pause':
      return (
        <>
          <Glyph letter="Ⅱ" word="Pause" />
          <span class="brief">{pauseWords(row.pause)}</span>
        </>
      )
  }
}

/** Arguments in one line: of the first text the text alone, as it says most. */
function plainArgument(argument: string): string {
  const [, first, text = '', rest = ''] =
    /^\{\s*"(\w+)":\s*"((?:[^"\\]|\\.)*)(?:"\s*[,}]?(.*?)\}?)?$/s.exec(argument) ?? []
  return first === undefined ? argument : `${text.replace(/\\(["\\/])/g, '$1')}  ${rest}`
}

function TurnLabel({ turn }: { readonly turn: TurnNode }) {
  const tools = turn.calls.map(({ toolName }) => toolName)
  return (
    <>
      <Glyph letter={String(turn.index)} word="Turn" />
      <span class="brief">
        {plainText(turn.text.replace(/\*\*|`/g, '')) || (
          <span class="quiet">{tools.length > 0 ? tools.join(', ') : 'no text'}</span>
        )}
      </span>
      {turn.attempts.length > 0 && <span class="tag warn">{`${turn.attempts.length + 1} attempts`}</span>}
      {turn.blocked !== null && <span class="tag bad">blocked</span>}
      {turn.replySeq === null && <span class="tag warn">no reply</span>}
      {turn.isCached && <span class="tag">cached</span>}
    </>
  )
}

function Glyph({ letter, word }: { readonly letter: string; readonly word: string }) {
  return (
    <>
      <span class="glyph" aria-hidden="true">
        {letter}
      </span>
      <span class="sr">{`${word} ${letter.length > 0 && /\d/.test(letter) ? letter : ''}`}</span>
    </>
  )
}

export function CallTags({ call }: { readonly call: CallNode }) {
  return (
    <>
      {call.state === 'failed' && <span class="tag bad">{plainText(call.errorType ?? 'failed')}</span>}
      {call.state !== 'failed' && call.state !== 'completed' && <span class="tag warn">{call.state}</span>}
      {call.interrupted !== null && <span class="tag bad">{`interrupted, ${call.interrupted}`}</span>}
      {call.starts.length > 1 && <span class="tag warn">{`begun ${call.starts.length} times`}</span>}
      {call.waits.length > 0 && call.state !== 'waiting' && <span class="tag">asked</span>}
      {call.via !== null && <span class="tag">{`via ${plainText(call.via)}`}</span>}
    </>
  )
}

export function StateTag({ state }: { readonly state: RunNode['state'] }) {
  if (state === 'completed') return null
  return <span class={`tag ${state === 'failed' ? 'bad' : 'warn'}`}>{state}</span>
}

/** Why a run did not go on, or does not. */
export function pauseWords({ reason, to }: Pause): string {
  const waits = to === null ? 'Waits' : 'Waited'
  const words: Readonly<Record<string, string>> = {
    approval_required: `${waits} for an approval`,
    input_required: `${waits} for an answer`,
    left: 'No process executed the run',
    failed: 'Failed, and was retried',
    queued: `${waits} to be begun`,
  }
  return words[reason] ?? reason
}

/** How long a row took, in ms, if that is known. */
export function durationOf(row: Row): number | undefined {
  const span = (from: number | null, to: number | null) => (from === null || to === null ? undefined : to - from)
  switch (row.kind) {
    case 'run':
      return span(row.run.startedAt, row.run.updatedAt)
    case 'turn':
      return span(row.turn.startedAt, row.turn.repliedAt)
    case 'call':
      return row.call.durationMs ?? span(row.call.startedAt, row.call.endedAt)
    case 'pause':
      return span(row.pause.from, row.pause.to)
    case 'prompt':
    case 'mark':
      return undefined
  }
}

function tokensOf(row: Row): string {
  if (row.kind !== 'turn' || row.turn.tokens === null) return ''
  const { input, output } = row.turn.tokens
  return `${countOf(input)} → ${countOf(output)}`
}

function barsOf(row: Row, scale: TimeScale): ComponentChildren {
  switch (row.kind) {
    case 'run':
      return <i class="whole" style={placed(scale, row.run.startedAt, row.run.updatedAt)} />
    case 'turn': {
      const { startedAt, firstDeltaAt, repliedAt, attempts } = row.turn
      const end = repliedAt ?? startedAt
      const lost = startedAt + attempts.reduce((total, { ms }) => total + ms, 0)
      return (
        <>
          {lost > startedAt && <i class="lost" style={placed(scale, startedAt, Math.min(lost, end))} />}
          <i class={firstDeltaAt === null ? '' : 'first'} style={placed(scale, Math.min(lost, end), end)} />
          {firstDeltaAt !== null && <i style={placed(scale, firstDeltaAt, end)} />}
        </>
      )
    }
    case 'call': {
      const { startedAt, endedAt, waits } = row.call
      return (
        <>
          {startedAt !== null && <i style={placed(scale, startedAt, endedAt ?? row.run.updatedAt)} />}
          {waits.map((wait) => (
            <i class="wait" style={placed(scale, wait.from, wait.to ?? row.run.updatedAt)} />
          ))}
        </>
      )
    }
    case 'pause':
      return <i class="wait" style={placed(scale, row.pause.from, row.pause.to ?? row.run.updatedAt)} />
    case 'mark':
      return <i style={placed(scale, row.mark.at, row.mark.at)} />
    case 'prompt':
      return null
  }
}

function placed(scale: TimeScale, from: number, to: number): { left: string; width: string } {
  const left = Math.min(scale.at(from), 0.996)
  return { left: `${(left * 100).toFixed(3)}%`, width: `${((scale.at(to) - left) * 100).toFixed(3)}%` }
}
