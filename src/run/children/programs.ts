import { HarnessError } from '#contracts/errors.js'
import type { HarnessResult } from '#contracts/result.js'
import type { RunContext } from '#core/loop/run-context.js'
import type { RunRules } from '#core/state/run-rules.js'
import { batchOf } from '#core/loop/calls/admission.js'
import { untilStopped } from '#util/abort.js'

type Outcome = Promise<HarnessResult<unknown>>
type Begin = (rules: Pick<RunRules, 'callsBefore'>) => Outcome

/** The programs of one run, one after another. */
interface Line {
  last: Promise<unknown>
  /** The calls that programs have made so far, by the call that started them. */
  readonly calls: { readonly callId: string; readonly count: number }[]
}

/**
 * The programs that calls have started. Those of one run take turns, so that each knows how many calls the others have made:
 * together they are under the limit of their run.
 */
export class Programs {
  readonly #lines = new WeakMap<RunContext, Line>()

  /** Runs a program of `above` when those before it have ended or wait. What would have ended that run ends it too. */
  within(above: RunContext, program: RunContext, begin: Begin): Outcome {
    const line = this.#lines.get(above) ?? { last: Promise.resolve(), calls: [] }
    this.#lines.set(above, line)
    const outcome = inTurn(line.last, program, () => begin({ callsBefore: callsBefore(above, line) }))
    const callId = program.parent?.callId ?? ''
    line.last = outcome.then(
      ({ usage }) => line.calls.push({ callId, count: usage.toolCalls }),
      (error: unknown) => {
        if (!(error instanceof HarnessError)) return
        line.calls.push({ callId, count: error.run?.usage.toolCalls ?? 0 })
        if (endsRun(program, error)) above.abort.abort(error)
      },
    )
    return outcome
  }
}

async function inTurn(before: Promise<unknown>, { abort }: RunContext, begin: () => Outcome): Outcome {
  await untilStopped(before, abort)
  if (!abort.isAborted) return begin()
  abort.release()
  throw abort.signal.reason
}

/** Those of calls that have ended are in the usage of the run. */
function callsBefore(above: RunContext, { calls }: Line): number {
  const { rules, usage } = above.state
  const open = new Set(batchOf(above).flatMap(({ callId, settled }) => (settled === null ? [callId] : [])))
  const ofOthers = calls.reduce((sum, { callId, count }) => (open.has(callId) ? sum + count : sum), 0)
  return (rules.callsBefore ?? 0) + usage.toolCalls + ofOthers
}

/** A limit of calls, or an extension that failed closed: had the run made the call itself, it would have ended. */
function endsRun(program: RunContext, { code }: HarnessError): boolean {
  if (!program.hasBegun || code !== 'limit_reached') return code === 'hook_failed'
  const { phase } = program.state
  const position = phase.at === 'ended' ? phase.position : phase
  return position?.at === 'batch' && !position.admitted
}
