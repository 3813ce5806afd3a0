import { memoryLog } from 'thinharness'
import type { DurableEvent, HarnessResult, ResumeState, RunLog, LogStore } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { harnessOf, tool } from '../../harness/support.js'

/** The state of a paused run as it comes back from a store: another object, through JSON. */
export function stored(result: Pick<HarnessResult<unknown>, 'resumeState'>): ResumeState {
  return jsonCopy(result.resumeState!)
}

export function jsonCopy<T>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T
}

/** The same document with its keys in another order, at every depth. */
export function reordered<T>(value: T): T {
  if (Array.isArray(value)) return value.map((each: unknown) => reordered(each)) as T
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, each]) => [key, reordered(each as unknown)]),
  ) as T
}

/** A log in memory that remembers in which order events of all runs were kept. */
export interface WatchedLog extends RunLog {
  /** Through JSON, as a file would give them back. */
  readonly kept: readonly DurableEvent[]
}

export function watchedLog(): WatchedLog {
  const inner = memoryLog()
  const kept: DurableEvent[] = []
  return {
    kept,
    async append(ref, events, options) {
      await inner.append(ref, events, options)
      kept.push(...jsonCopy(events))
    },
    read: (ref, options) => inner.read(ref, options),
    claim: (ref, owner, ttlMs) => inner.claim(ref, owner, ttlMs),
  }
}

/** What a crash left of a log: these events, in a log of a new process. */
export async function logWith(events: readonly DurableEvent[]): Promise<LogStore> {
  const log = memoryLog()
  for (const event of jsonCopy(events)) await log.append({ kind: 'run', id: event.runId }, [event])
  return log
}

/** The events of one run in a log, through JSON. */
export async function eventsIn(log: RunLog, runId: string): Promise<DurableEvent[]> {
  const events: DurableEvent[] = []
  for await (const event of log.read({ kind: 'run', id: runId })) events.push(jsonCopy(event))
  return events
}

/** A tool that needs approval, and what it was called with. */
export function payTool(answer = 'paid') {
  const ran: unknown[] = []
  const pay = tool(
    'pay',
    (args) => {
      ran.push(args)
      return answer
    },
    { requiresApproval: true },
  )
  return { pay, ran }
}

/** A run of one call of `pay` that waits for approval. */
export async function pausedRun(options: { readonly text?: string } = {}) {
  const { pay, ran } = payTool()
  const model = new ScriptedModel().calls('pay', { amount: 5 }, options)
  const paused = await harnessOf({ model, tools: [pay] }).run('Pay five.', { runId: 'run_pay', metadata: { order: 7 } })
  return { pay, ran, paused, state: stored(paused) }
}

export const YES = { callId: 'call_1', approved: true } as const
