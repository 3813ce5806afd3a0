import type { ComponentChildren } from 'preact'
import { totalsOf } from '../finding/series.js'
import type { LimitUse } from '../finding/series.js'
import type { RunNode } from '../reading/nodes.js'
import { countOf, moneyOf, plainText, timeOf } from './text/words.js'

/** Totals of a run, and how much of its limits it has used. */
export function Figures({ run }: { readonly run: RunNode }) {
  const { ms, workMs, turns, calls, failedCalls, childTurns, input, cached, output, costUsd, limits } = totalsOf(run)
  return (
    <section class="figures" aria-label="Totals" tabIndex={0}>
      <dl>
        <Figure name="Model">{plainText(run.model)}</Figure>
        <Figure name="Duration" note={ms - workMs > 1000 ? `of ${timeOf(ms)} with pauses` : undefined}>
          {timeOf(workMs) || '–'}
        </Figure>
        <Figure name="Turns" note={childTurns > 0 ? `+ ${childTurns} of child runs` : undefined}>
          {countOf(turns)}
        </Figure>
        <Figure name="Calls" note={failedCalls > 0 ? <span class="bad">{`${failedCalls} failed`}</span> : undefined}>
          {countOf(calls)}
        </Figure>
        <Figure
          name="Tokens in"
          note={input > 0 ? `${Math.round((cached / input) * 100)}% cached` : undefined}
          part={cached / (input || 1)}
        >
          {countOf(input)}
        </Figure>
        <Figure name="Tokens out">{countOf(output)}</Figure>
        {costUsd !== null && <Figure name="Cost">{moneyOf(costUsd)}</Figure>}
        {run.stopReason !== null && <Figure name="Stopped">{plainText(run.stopReason.replaceAll('_', ' '))}</Figure>}
        {limits.map((limit) => (
          <Limit limit={limit} />
        ))}
      </dl>
    </section>
  )
}

interface FigureProps {
  readonly name: string
  readonly note?: ComponentChildren
  /** From 0 to 1, as a bar below. */
  readonly part?: number
  /** A bar that is nearly full is a warning. */
  readonly isLimit?: boolean
  readonly children: ComponentChildren
}

function Figure(props: FigureProps) {
  return (
    <div>
      <dt>{props.name}</dt>
      <dd>
        {props.children}
        {props.note !== undefined && <span class="quiet"> {props.note}</span>}
        {props.part !== undefined && <Meter part={props.part} isLimit={props.isLimit === true} />}
      </dd>
    </div>
  )
}

function Meter({ part, isLimit }: { readonly part: number; readonly isLimit: boolean }) {
  return (
    <span class="meter" aria-hidden="true">
      <i class={isLimit && part >= 0.9 ? 'near' : ''} style={{ width: `${Math.min(100, part * 100).toFixed(1)}%` }} />
    </span>
  )
}

const LIMIT_NAMES: Readonly<Record<string, string>> = {
  modelRequests: 'Requests',
  toolCalls: 'Calls',
  inputTokens: 'Tokens in',
  outputTokens: 'Tokens out',
  timeMs: 'Time',
  costUsd: 'Cost',
}

/** One limit, and the part of it that is used. */
function Limit({ limit: { name, used, limit } }: { readonly limit: LimitUse }) {
  const inWords = name === 'timeMs' ? timeOf : name === 'costUsd' ? moneyOf : countOf
  return (
    <Figure
      name={`${LIMIT_NAMES[name] ?? name} limit`}
      note={`of ${inWords(limit)}`}
      part={used / (limit || 1)}
      isLimit
    >
      {inWords(used)}
    </Figure>
  )
}
