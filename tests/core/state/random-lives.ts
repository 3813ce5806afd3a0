import fc from 'fast-check'
import { z } from 'zod'
import { Harness, ModelRetry } from 'thinharness'
import type { Answer, DurableEvent, HarnessError, HarnessResult, PendingItem, RunLog, ToolSpec } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { watchedLog } from '../../run/resume/pause-support.js'
import type { WatchedLog } from '../../run/resume/pause-support.js'
import { tool } from '../../harness/support.js'

export const CALLS = ['safe', 'once', 'asks', 'held', 'unknown', 'fails', 'delegate', 'leave', 'nobody'] as const
type Call = (typeof CALLS)[number]

/** A run and what happens to it: plain data, so that one that fails can be shrunk and shown. */
export interface RandomLife {
  readonly turns: readonly (readonly Call[])[]
  readonly childTurns: readonly (readonly Call[])[]
  /** After so many kept events of the first process the run is aborted. */
  readonly abortAt: number | null
  /** Each process is killed where its log is so long, in thousandths of what it would be. */
  readonly kills: readonly number[]
  readonly approves: boolean
  /** One answer at a time. */
  readonly inParts: boolean
  readonly verdict: 'happened' | 'did_not_happen' | 'run_again'
}

const turns = (maxLength: number): fc.Arbitrary<Call[][]> =>
  fc.array(fc.array(fc.constantFrom(...CALLS), { minLength: 1, maxLength: 4 }), { maxLength })

export const randomLife: fc.Arbitrary<RandomLife> = fc.record({
  turns: turns(3),
  childTurns: turns(2),
  abortAt: fc.option(fc.integer({ min: 1, max: 30 }), { freq: 3 }),
  kills: fc.array(fc.integer({ min: 0, max: 1000 }), { maxLength: 3 }),
  approves: fc.boolean(),
  inParts: fc.boolean(),
  verdict: fc.constantFrom('happened', 'did_not_happen', 'run_again'),
})

/** How one process left the run. */
export interface Stretch {
  /** All that is kept of all runs, in order. */
  readonly kept: readonly DurableEvent[]
  readonly end: HarnessResult | HarnessError
  /** Calls of tools that may not be repeated, by their keys. */
  readonly effects: readonly string[]
}

/** Lives through it: run, kills and recoveries, answers until nothing waits. */
export async function live(life: RandomLife): Promise<readonly Stretch[]> {
  const stretches: Stretch[] = []
  let left: readonly DurableEvent[] = []
  for (const kill of [...life.kills, null]) {
    const stretch = await inProcess(life, left)
    stretches.push(stretch)
    if (kill === null) break
    left = leftBy(kill, stretch)
  }
  return stretches
}

/** What a kill leaves. */
export function leftBy(kill: number, { kept }: Stretch): readonly DurableEvent[] {
  return kept.slice(0, Math.max(1, Math.round((kill * kept.length) / 1000)))
}

async function inProcess(life: RandomLife, left: readonly DurableEvent[]): Promise<Stretch> {
  const log = watchedLog()
  for (const event of left) await log.append({ kind: 'run', id: event.runId }, [structuredClone(event)])
  const effects: string[] = []
  const controller = new AbortController()
  const first = left.length === 0
  const harness = new Harness({
    ...{ builtinTools: [], model: modelOf(life), tools: toolsOf(effects), toolRetries: 100 },
    log: aborting(log, first ? life.abortAt : null, controller),
  })
  const end = await toTheEnd(harness, life, first ? controller.signal : null).catch((error: unknown) => error)
  return { kept: log.kept, end: end as Stretch['end'], effects }
}

/** The log, which aborts the run once so many events are kept. */
function aborting(log: WatchedLog, count: number | null, controller: AbortController): RunLog {
  return {
    ...log,
    append: async (ref, events, options) => {
      await log.append(ref, events, options)
      if (count !== null && log.kept.length >= count) controller.abort(new Error('Random abort.'))
    },
  }
}

async function toTheEnd(harness: Harness, life: RandomLife, signal: AbortSignal | null): Promise<HarnessResult> {
  let result = await (signal === null ? harness.recover('run_life') : harness.run('go', { runId: 'run_life', signal }))
  while (result.pending.length > 0) {
    const answers = result.pending.map((item) => answerTo(item, life))
    result = await harness.resume(result.resumeState!, life.inParts ? answers.slice(-1) : answers)
  }
  return result
}

export function answerTo(
  { kind, callId }: PendingItem,
  { approves, verdict }: Pick<RandomLife, 'approves' | 'verdict'>,
): Answer {
  switch (kind) {
    case 'approval':
      return { callId, approved: approves }
    case 'question':
      return { callId, answer: 'so' }
    case 'unknown_outcome':
      return { callId, answer: { outcome: verdict } }
  }
}

function modelOf({ turns: top, childTurns }: RandomLife): ScriptedModel {
  return new ScriptedModel().always(({ turn, messages }) => {
    const isTop = messages.some((message) => message.role === 'user' && message.content === 'go')
    const calls = (isTop ? top : childTurns)[turn]
    return calls === undefined ? 'Done.' : { calls: calls.map((name) => ({ name })) }
  })
}

export function toolsOf(effects: string[]): ToolSpec[] {
  const effect = (name: string, beside: Partial<ToolSpec> = {}): ToolSpec =>
    tool(name, (_, { idempotencyKey }) => void effects.push(idempotencyKey), beside)
  const tools = [
    tool('safe', () => 'safe', { annotations: { readOnly: true } }),
    effect('once'),
    effect('held', { requiresApproval: true, sequential: true }),
    effect('unknown', { onUnknownOutcome: 'pause' }),
    tool('fails', () => Promise.reject(new ModelRetry('Again.'))),
    tool('asks', (_, context) => context.ask('How?', z.string()), { onUnknownOutcome: 'retry' }),
  ]
  const delegate = tool(
    'delegate',
    async (_, context) => {
      const runs = ['a', 'b'].map((key) => context.spawn({ prompt: key, key, tools }))
      return (await Promise.all(runs.map(({ result }) => result))).map(({ text }) => text)
    },
    { onUnknownOutcome: 'retry' },
  )
  const leave = tool('leave', (_, { spawn }) => spawn({ prompt: 'left', tools, background: true }).runId, {
    onUnknownOutcome: 'retry',
  })
  return [...tools, delegate, leave]
}
