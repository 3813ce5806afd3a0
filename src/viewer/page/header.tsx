import type { ComponentChildren } from 'preact'
import { totalsOf } from '../finding/series.js'
import type { LimitUse } from '../finding/series.js'
import type { RunNode } from '../reading/nodes.js'
import { countOf, moneyOf, plainText, timeOf } from './text/formatted-text.js'

/** Totals of a run, and how much of its limits it has used. */
export function Figures({ run }: { readonly run: RunNode }) {
  const { ms, workMs, turns, calls, failedCalls, childTurns, input, cached, output, costUsd, limits } = totalsOf(run)
  const limitOf = (name: string) => limits.find((limit) => limit.name === name)
  return (
    <section class="figures" aria-label="Totals" tabIndex={0}>
      <dl>
        <Figure name="Model">{plainText(run.model)}</Figure>
        <Figure
          name="Duration"
          limit={limitOf('timeMs')}
          inWords={timeOf}
          note={ms - workMs > 1000 && `${timeOf(ms)} with pauses`}
        >
          {timeOf(workMs) || '–'}
        </Figure>
        <Figure name="Turns" limit={limitOf('modelRequests')} note={childTurns > 0 && `+ ${childTurns} of child runs`}>
          {countOf(turns)}
        </Figure>
        <Figure
          name="Calls"
          limit={limitOf('toolCalls')}
          note={failedCalls > 0 && <span class="bad">{`${failedCalls} failed`}</span>}
        >
          {countOf(calls)}
        </Figure>
        <Figure
          name="Tokens in"
          limit={limitOf('inputTokens')}
          note={input > 0 && `${Math.round((cached / input) * 100)}% cached`}
        >
          {countOf(input)}
        </Figure>
        <Figure name="Tokens out" limit={limitOf('outputTokens')}>
          {countOf(output)}
        </Figure>
        {costUsd !== null && (
          <Figure name="Cost" limit={limitOf('costUsd')} inWords={moneyOf}>
            {moneyOf(costUsd)}
          </Figure>
        )}
        {run.stopReason !== null && <Figure name="Stopped">{plainText(run.stopReason.replaceAll('_', ' '))}</Figure>}
      </dl>
    </section>
  )
}

interface FigureProps {
  readonly name: string
  readonly limit?: LimitUse | undefined
  readonly inWords?: (value: number) => string
  readonly note?: ComponentChildren
  readonly children: ComponentChildren
}

/** A number with its name, and with the part of its limit that is used. */
function Figure({ name, limit, inWords = countOf, note = null, children }: FigureProps) {
  const part = limit === undefined ? 0 : Math.min(1, limit.used / (limit.limit || 1))
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        {children}
        {limit !== undefined && <span class="quiet">{` of ${inWords(limit.limit)}`}</span>}
        {note !== null && note !== false && <span class="quiet note">{note}</span>}
        {limit !== undefined && (
          <span class="meter" aria-hidden="true">
            <i class={part >= 0.9 ? 'near' : ''} style={{ width: `${(part * 100).toFixed(1)}%` }} />
          </span>
        )}
      </dd>
    </div>
  )
}
