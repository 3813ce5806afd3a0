import type { LogEvent, LogStore } from '#core/log/log.js'
import type { RunSummary } from '#core/log/digest.js'
import { Events, thread } from './events.js'
import type { Beginning } from './events.js'
import { expectSame } from '../expect.js'
import { all, runOf, threadOf } from './law.js'
import type { LogLaw } from './law.js'

/** Laws about logs in short. */
export const lookingLaws = {
  tells_how_runs_stand: {
    says: 'The summary of a run has its status, times, model, usage, parent and pending items.',
    async holds({ store, again }) {
      const stories = await fill(store)
      const log = await again()
      expectSame('an unknown run', await log.inspect(runOf('run_unknown')), null)
      for (const { digest } of stories) {
        const { phase, ...fields } = digest
        const isOwned = digest.runId === 'run_running'
        const status = phase === 'open' ? (isOwned ? 'running' : 'interrupted') : phase
        expectSame(`\`inspect\` of \`${digest.runId}\``, await log.inspect(runOf(digest.runId)), { ...fields, status })
      }
      const statuses = await all(log.list())
      const got = Object.fromEntries(statuses.map(({ runId, status }) => [runId, status]))
      expectSame('the status of each run', got, STATUSES)
      for (const summary of statuses) {
        expectSame(`the list’s \`${summary.runId}\``, summary, await log.inspect(runOf(summary.runId)))
      }
    },
  },
  computes_missing_digests: {
    says: 'The summary of a run whose writer passed no digest is computed from its events.',
    async holds({ store, again }) {
      const stories = await fill(store, { withDigests: false })
      const log = await again()
      const others = await fill(await again(), { prefix: 'other_' })
      for (const [index, { digest }] of stories.entries()) {
        const [found, other] = [
          await log.inspect(runOf(digest.runId)),
          await log.inspect(runOf(others[index]?.digest.runId ?? '')),
        ]
        expectSame(`\`inspect\` of \`${digest.runId}\``, withoutIds(found), withoutIds(other))
      }
      const paused = await all(log.list({ status: 'paused' }))
      expectSame('the paused runs', idsOf(paused), ['run_paused', 'other_run_paused'])
    },
  },
  exports_runs: {
    says: 'The export of a run contains the conversation that the run continues by reference.',
    async holds({ store, again }) {
      const before = new Events('run_1')
      before.completes()
      await store.append(before.ref, before.made)
      const after = new Events('run_2', { afterMs: 10_000 })
      const [started] = after.made
      if (started === undefined) throw new Error('Expected the beginning of a run.')
      const history = { runId: 'run_1', seq: before.seq, entryId: 'e1' }
      const begins: LogEvent & { history: unknown } = { ...started, history }
      await store.append(after.ref, [begins], { references: [before.ref] })
      const [exported] = await all((await again()).export('run_2'))
      const prompt = { role: 'user', id: 'e1', at: before.made[0]?.at, content: [{ type: 'text', text: 'Go.' }] }
      expectSame('the export', exported, { ...started, history: [prompt] })
      expectSame('the export of a run that refers to nothing', await all(store.export('run_1')), before.made)
    },
  },
  lists_newest_first: {
    says: 'Runs are listed newest first, as many as there are, by status, parent and resource, after any of them.',
    async holds({ store, again }) {
      await fill(store)
      const many = Array.from({ length: 230 }, (_, index) => `many_${String(index).padStart(3, '0')}`)
      for (const runId of many) {
        const { ref, made, digest } = new Events(runId, { afterMs: 1_000_000 })
        await store.append(ref, made, { digest })
      }
      const log = await again()
      const listed = await all(log.list({ kind: 'run' }))
      expectSame('the list', idsOf(listed), [...many.toReversed(), ...[...FILLED].reverse()])
      const last = listed[150]
      if (last !== undefined) expectSame('the next page', await all(log.list({ before: last })), listed.slice(151))
      const paused = await all(log.list({ status: ['paused', 'failed'] }))
      expectSame('the paused and the failed', idsOf(paused), ['run_failed', 'run_paused'])
      expectSame('the running', idsOf(await all(log.list({ status: 'running' }))), ['run_running'])
      const children = await all(log.list({ parentRunId: 'run_completed' }))
      expectSame('the runs below one', idsOf(children), ['run_child'])
      const top = await all(log.list({ parentRunId: null }))
      expectSame('the runs at the top', top.length, listed.length - 1)
      expectSame('the runs of a resource', (await all(log.list({ resourceId: 'user_7' }))).length, listed.length)
      expectSame('the runs of another', await all(log.list({ resourceId: 'user_8' })), [])
    },
  },
  lists_threads: {
    says: 'Threads are listed with the digest of their last events, the most recently written first.',
    async holds({ store, again }) {
      for (const [index, id] of ['t_1', 't_2', 't_3'].entries()) {
        const digest = { resourceId: id === 't_2' ? 'user_8' : 'user_7', title: `Thread ${id}` }
        await store.append(threadOf(id), thread(1, index * 1000), { digest })
      }
      const [, second] = thread(2, 10_000)
      if (second !== undefined) {
        await store.append(threadOf('t_1'), [second], { digest: { resourceId: 'user_7', title: 'Written last' } })
      }
      const log = await again()
      const listed = await all(log.list({ kind: 'thread' }))
      expectSame(
        'the threads',
        listed.map(({ threadId }) => threadId),
        ['t_1', 't_3', 't_2'],
      )
      expectSame('the first', listed[0], {
        threadId: 't_1',
        createdAt: thread(1)[0]?.at,
        updatedAt: second?.at,
        lastSeq: 2,
        owner: null,
        digest: { resourceId: 'user_7', title: 'Written last' },
      })
      const mine = await all(log.list({ kind: 'thread', resourceId: 'user_7' }))
      expectSame(
        'the threads of a resource',
        mine.map(({ threadId }) => threadId),
        ['t_1', 't_3'],
      )
      const [first] = listed
      if (first !== undefined) {
        expectSame('the next page', await all(log.list({ kind: 'thread', before: first })), listed.slice(1))
      }
      expectSame('an unknown thread', await log.inspect(threadOf('t_9')), null)
      await store.append(threadOf('t_3'), thread(2).slice(1))
      expectSame('a digest that was not passed', (await log.inspect(threadOf('t_3')))?.digest, null)
    },
  },
} as const satisfies Record<string, LogLaw>

/** The runs of `fill`, the oldest first. */
export const FILLED = [
  'run_running',
  'run_interrupted',
  'run_paused',
  'run_completed',
  'run_child',
  'run_failed',
  'run_cancelled',
] as const

const STATUSES = {
  run_running: 'running',
  run_interrupted: 'interrupted',
  run_paused: 'paused',
  run_completed: 'completed',
  run_child: 'completed',
  run_failed: 'failed',
  run_cancelled: 'cancelled',
}

/** Stores a run of each status. */
export async function fill(
  store: LogStore,
  { withDigests = true, prefix = '' }: { readonly withDigests?: boolean; readonly prefix?: string } = {},
): Promise<readonly Events[]> {
  const events = (runId: (typeof FILLED)[number], beginning: Beginning = {}): Events =>
    new Events(`${prefix}${runId}`, { ...beginning, afterMs: FILLED.indexOf(runId) * 1000 })
  const running = events('run_running')
  const child = events('run_child', { parentRunId: `${prefix}run_completed` })
  const [paused, completed] = [events('run_paused'), events('run_completed')]
  const [failed, cancelled] = [events('run_failed'), events('run_cancelled')]
  paused.pauses()
  completed.completes()
  child.completes()
  failed.fails('provider_error')
  cancelled.fails('cancelled')
  const stories = [running, events('run_interrupted'), paused, completed, child, failed, cancelled]
  await store.claim(running.ref, 'ann', 60_000)
  for (const story of stories) {
    const owner = story === running ? 'ann' : undefined
    await store.append(story.ref, story.made, { owner, ...(withDigests && { digest: story.digest }) })
  }
  return stories
}

export function idsOf(summaries: readonly RunSummary[]): string[] {
  return summaries.map(({ runId }) => runId)
}

function withoutIds(summary: RunSummary | null): unknown {
  return JSON.parse(JSON.stringify(summary).replaceAll('other_run_', 'run_'))
}
