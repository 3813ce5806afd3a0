import type { PendingItem, RunStore, RunSummary, RunUsage } from '../../index.js'
import { Events } from './events.js'
import type { Beginning } from './events.js'
import { all, expectEqual } from './law.js'
import type { LogLaw } from './law.js'

const TOKENS = { inputTokens: 20, outputTokens: 10, cacheReadTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 }

const USAGE: RunUsage = {
  modelRequests: 2,
  toolCalls: 1,
  cancelledToolCalls: 0,
  outputRetries: 0,
  toolRetries: {},
  hookFailures: 0,
  children: { modelRequests: 0, toolCalls: 0 },
  ...TOKENS,
  costUsd: null,
  byModel: { 'scripted:scripted-1': { modelRequests: 2, ...TOKENS, costUsd: null } },
}

const PENDING: PendingItem = {
  kind: 'approval',
  callId: 'call_1',
  toolName: 'pay',
  arguments: '{"eur":5}',
  path: ['run_paused'],
}

/** Laws of what is told of runs, and of how they are removed. */
export const lookingLaws = {
  tells_how_runs_stand: {
    says: 'A run in short has its status, times, model, usage, parent and what is pending.',
    async holds({ store, again }) {
      await fill(store)
      const log = await again()
      expectEqual('an unknown run', await log.inspect('run_unknown'), null)
      const found = await log.inspect('run_paused')
      expectEqual('a paused run', found, { ...PAUSED, updatedAt: found?.updatedAt })
      const statuses = await all(log.list())
      const expected = { run_running: 'running', run_interrupted: 'interrupted', run_paused: 'paused' }
      const ended = {
        run_completed: 'completed',
        run_failed: 'failed',
        run_cancelled: 'cancelled',
        run_child: 'completed',
      }
      const got = Object.fromEntries(statuses.map(({ runId, status }) => [runId, status]))
      expectEqual('the status of each run', got, { ...expected, ...ended })
      for (const summary of statuses) {
        expectEqual(`\`inspect\` of \`${summary.runId}\``, await log.inspect(summary.runId), summary)
      }
      const child = await log.inspect('run_child')
      expectEqual('the parent', child?.parent, { runId: 'run_completed', callId: 'call_1', agentName: 'helper' })
    },
  },
  lists_newest_first: {
    says: 'Runs are listed newest first, as many as there are, by status and parent, from any place on.',
    async holds({ store, again }) {
      await fill(store)
      const many = Array.from({ length: 230 }, (_, index) => `many_${String(index).padStart(3, '0')}`)
      for (const runId of many) await store.append(runId, new Events(runId, { afterMs: 1_000_000 }).made)
      const log = await again()
      const listed = await all(log.list())
      expectEqual('the list', idsOf(listed), [...many.toReversed(), ...[...FILLED].reverse()])
      const last = listed[150]
      if (last !== undefined) expectEqual('the next page', await all(log.list({ before: last })), listed.slice(151))
      const paused = await all(log.list({ status: ['paused', 'failed'] }))
      expectEqual('the paused and the failed', idsOf(paused), ['run_failed', 'run_paused'])
      expectEqual('the running', idsOf(await all(log.list({ status: 'running' }))), ['run_running'])
      const children = await all(log.list({ parentRunId: 'run_completed' }))
      expectEqual('the runs below one', idsOf(children), ['run_child'])
      const top = await all(log.list({ parentRunId: null }))
      expectEqual('the runs at the top', top.length, listed.length - 1)
    },
  },
  prunes_what_has_ended: {
    says: 'Only runs that have ended are removed, with those below them, unless others are asked for; never one that runs.',
    async holds({ store, again }) {
      await fill(store)
      const log = await again()
      expectEqual('runs removed that are older than 100 years', await log.prune({ olderThanMs: 3_200_000_000_000 }), 0)
      expectEqual('runs removed behind the two newest', await log.prune({ keep: 2 }), 2)
      const left = FILLED.filter((runId) => runId !== 'run_completed' && runId !== 'run_child')
      expectEqual('what is left', idsOf(await all(log.list())), [...left].reverse())
      expectEqual(
        'a run that was removed',
        [await log.inspect('run_child'), await all(log.read('run_child'))],
        [null, []],
      )
      expectEqual('runs removed', await log.prune({ keep: 0, also: ['paused', 'interrupted'] }), 4)
      expectEqual('what is left', idsOf(await all(log.list())), ['run_running'])
      await log.append('run_completed', new Events('run_completed').made)
      expectEqual('a run begun anew', (await log.inspect('run_completed'))?.lastSeq, 1)
    },
  },
} as const satisfies Record<string, LogLaw>

/** The runs of `fill`, the oldest first. */
const FILLED = [
  'run_running',
  'run_interrupted',
  'run_paused',
  'run_completed',
  'run_child',
  'run_failed',
  'run_cancelled',
] as const

const PAUSED: Omit<RunSummary, 'updatedAt'> = {
  runId: 'run_paused',
  status: 'paused',
  stopReason: 'approval_required',
  startedAt: '2026-01-01T00:00:03.000Z',
  endedAt: null,
  provider: 'scripted',
  model: 'scripted-1',
  metadata: { tenant: 7 },
  usage: USAGE,
  pending: [PENDING],
  parent: null,
  error: null,
  lastSeq: 3,
}

/** A run of each kind. */
async function fill(store: RunStore): Promise<void> {
  const events = (runId: (typeof FILLED)[number], beginning: Beginning = {}): Events =>
    new Events(runId, { ...beginning, afterMs: FILLED.indexOf(runId) * 1000 })
  const [paused, completed, failed, cancelled] = [
    events('run_paused'),
    events('run_completed'),
    events('run_failed'),
    events('run_cancelled'),
  ]
  const child = events('run_child', { parentRunId: 'run_completed' })
  paused.completes(USAGE, [PENDING])
  completed.completes(USAGE)
  child.completes(USAGE)
  failed.fails('provider_error', USAGE)
  cancelled.fails('cancelled', USAGE)
  await store.claim('run_running', 'ann', 60_000)
  await store.append('run_running', events('run_running').made, 'ann')
  await store.append('run_interrupted', events('run_interrupted').made)
  for (const { made } of [paused, completed, child, failed, cancelled]) await store.append(made[0]?.runId ?? '', made)
}

function idsOf(summaries: readonly RunSummary[]): string[] {
  return summaries.map(({ runId }) => runId)
}
