import type { LogEvent, LogStore } from '#core/log/log.js'
import type { RunSummary, ThreadSummary } from '#core/log/run-summary.js'
import { Events, threadStory } from './story.js'
import type { Beginning } from './story.js'
import { expectSame } from '../expect.js'
import { collectAll, runRef, threadRef } from './law-bench.js'
import type { LogLaw } from './law-bench.js'

/** Laws about logs in short. */
export const listingLaws = {
  tells_how_runs_stand: {
    says: 'The summary of a run has its status, times, model, usage, parent and pending items.',
    async holds({ store, again }) {
      const stories = await fillStore(store)
      const log = await again()
      expectSame('an unknown run', await log.inspect(runRef('run_unknown')), null)
      for (const { digest } of stories) {
        const { phase, ...fields } = digest
        const isOwned = digest.runId === 'run_running'
        const status = phase === 'open' ? (isOwned ? 'running' : 'interrupted') : phase
        const found = withoutCursor(await log.inspect(runRef(digest.runId)))
        expectSame(`\`inspect\` of \`${digest.runId}\``, found, { ...fields, status })
      }
      const statuses = await collectAll(log.list())
      const got = Object.fromEntries(statuses.map(({ runId, status }) => [runId, status]))
      expectSame('the status of each run', got, STATUSES)
      for (const summary of statuses) {
        const inspected = withoutCursor(await log.inspect(runRef(summary.runId)))
        expectSame(`the list’s \`${summary.runId}\``, withoutCursor(summary), inspected)
      }
    },
  },
  computes_missing_digests: {
    says: 'The summary of a run whose writer passed no digest is computed from its events; if they cannot be read, it is listed as `unreadable` and hides no other.',
    async holds({ store, again }) {
      const stories = await fillStore(store, { withDigests: false })
      const log = await again()
      const others = await fillStore(await again(), { prefix: 'other_' })
      for (const [index, { digest }] of stories.entries()) {
        const [found, other] = [
          await log.inspect(runRef(digest.runId)),
          await log.inspect(runRef(others[index]?.digest.runId ?? '')),
        ]
        expectSame(`\`inspect\` of \`${digest.runId}\``, withoutIds(found), withoutIds(other))
      }
      const paused = await collectAll(log.list({ status: 'paused' }))
      expectSame('the paused runs', summaryIds(paused), ['run_paused', 'other_run_paused'])
      await expectUnreadableListed(log)
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
      const [exported] = await collectAll((await again()).export('run_2'))
      const prompt = { role: 'user', id: 'e1', at: before.made[0]?.at, content: [{ type: 'text', text: 'Go.' }] }
      expectSame('the export', exported, { ...started, history: [prompt] })
      expectSame('the export of a run that refers to nothing', await collectAll(store.export('run_1')), before.made)
    },
  },
  lists_newest_first: {
    says: 'Runs are listed newest first, as many as there are, by status, parent and resource, after any of them.',
    async holds({ store, again }) {
      await fillStore(store)
      const many = Array.from({ length: 230 }, (_, index) => `many_${String(index).padStart(3, '0')}`)
      for (const runId of many) {
        const { ref, made, digest } = new Events(runId, { afterMs: 1_000_000 })
        await store.append(ref, made, { digest })
      }
      const log = await again()
      const listed = await collectAll(log.list({ kind: 'run' }))
      expectSame('the list', summaryIds(listed), [...many.toReversed(), ...[...FILLED].reverse()])
      const last = listed[150]
      if (last !== undefined)
        expectSame(
          'the next page',
          summaryIds(await collectAll(log.list({ before: last }))),
          summaryIds(listed).slice(151),
        )
      const paused = await collectAll(log.list({ status: ['paused', 'failed'] }))
      expectSame('the paused and the failed', summaryIds(paused), ['run_failed', 'run_paused'])
      expectSame('the running', summaryIds(await collectAll(log.list({ status: 'running' }))), ['run_running'])
      const children = await collectAll(log.list({ parentRunId: 'run_completed' }))
      expectSame('the runs below one', summaryIds(children), ['run_child'])
      const top = await collectAll(log.list({ parentRunId: null }))
      expectSame('the runs at the top', top.length, listed.length - 1)
      expectSame('the runs of a resource', (await collectAll(log.list({ resourceId: 'user_7' }))).length, listed.length)
      expectSame('the runs of another', await collectAll(log.list({ resourceId: 'user_8' })), [])
    },
  },
  lists_threads: {
    says: 'Threads are listed with the digest of their last events, the most recently written first.',
    async holds({ store, again }) {
      for (const [index, id] of ['t_1', 't_2', 't_3'].entries()) {
        const digest = { resourceId: id === 't_2' ? 'user_8' : 'user_7', title: `Thread ${id}` }
        await store.append(threadRef(id), threadStory(1, index * 1000), { digest })
      }
      const [, second] = threadStory(2, 10_000)
      if (second !== undefined) {
        await store.append(threadRef('t_1'), [second], { digest: { resourceId: 'user_7', title: 'Written last' } })
      }
      const log = await again()
      const listed = await collectAll(log.list({ kind: 'thread' }))
      expectSame(
        'the threads',
        listed.map(({ threadId }) => threadId),
        ['t_1', 't_3', 't_2'],
      )
      expectSame('the first', withoutCursor(listed[0]), {
        threadId: 't_1',
        createdAt: threadStory(1)[0]?.at,
        updatedAt: second?.at,
        lastSeq: 2,
        owner: null,
        digest: { resourceId: 'user_7', title: 'Written last' },
      })
      const mine = await collectAll(log.list({ kind: 'thread', resourceId: 'user_7' }))
      expectSame(
        'the threads of a resource',
        mine.map(({ threadId }) => threadId),
        ['t_1', 't_3'],
      )
      const [first] = listed
      if (first !== undefined) {
        const next = await collectAll(log.list({ kind: 'thread', before: first }))
        expectSame('the next page', next.map(withoutCursor), listed.slice(1).map(withoutCursor))
      }
      expectSame('an unknown thread', await log.inspect(threadRef('t_9')), null)
      await store.append(threadRef('t_3'), threadStory(2).slice(1))
      expectSame('a digest that was not passed', (await log.inspect(threadRef('t_3')))?.digest, null)
    },
  },
} as const satisfies Record<string, LogLaw>

/** Adds a run with an event that cannot follow, and one of another version. */
async function expectUnreadableListed(log: LogStore): Promise<void> {
  const before = summaryIds(await collectAll(log.list()))
  const broken = new Events('run_broken', { afterMs: 50_000, parentRunId: 'run_completed' })
  const future = new Events('run_future', { afterMs: 60_000 })
  const impossible = { kind: 'tool_call_completed', seq: 2, at: broken.digest.updatedAt, callId: 'call_9' }
  await log.append(broken.ref, [...broken.made, impossible])
  await log.append(
    future.ref,
    future.made.map((event) => ({ ...event, version: 99 })),
  )
  const [last, broke, ...others] = await collectAll(log.list())
  expectSame('the list', summaryIds(others), before)
  const { metadata } = broken.digest
  const unreadable = { status: 'unreadable', code: 'invalid_log', metadata }
  expectSame('a run of another version', factsOf(last), { ...unreadable, runId: 'run_future', parent: null })
  expectSame('a broken run', factsOf(broke), { ...unreadable, runId: 'run_broken', parent: 'run_completed' })
  const found = await collectAll(log.list({ status: 'unreadable' }))
  expectSame('the unreadable runs', summaryIds(found), ['run_future', 'run_broken'])
  expectSame('what is pruned beside them', await log.prune({ keep: 1000 }), 0)
  expectSame('the removed', await log.prune({ only: [future.ref] }), 1)
  expectSame('the rest', summaryIds(await collectAll(log.list())), ['run_broken', ...before])
}

function factsOf(summary: RunSummary | undefined): unknown {
  if (summary === undefined) return 'nothing'
  const { runId, status, error, metadata, parent } = summary
  return { runId, status, code: error?.code, metadata, parent: parent?.runId ?? null }
}

/** The runs of `fillStore`, the oldest first. */
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
export async function fillStore(
  store: LogStore,
  { withDigests = true, prefix = '' }: { readonly withDigests?: boolean; readonly prefix?: string } = {},
): Promise<readonly Events[]> {
  const filledEvents = (runId: (typeof FILLED)[number], beginning: Beginning = {}): Events =>
    new Events(`${prefix}${runId}`, { ...beginning, afterMs: FILLED.indexOf(runId) * 1000 })
  const running = filledEvents('run_running')
  const child = filledEvents('run_child', { parentRunId: `${prefix}run_completed` })
  const [paused, completed] = [filledEvents('run_paused'), filledEvents('run_completed')]
  const [failed, cancelled] = [filledEvents('run_failed'), filledEvents('run_cancelled')]
  paused.pauses()
  completed.completes()
  child.completes()
  failed.fails('provider_error')
  cancelled.fails('cancelled')
  const stories = [running, filledEvents('run_interrupted'), paused, completed, child, failed, cancelled]
  await store.claim(running.ref, 'ann', 60_000)
  for (const story of stories) {
    const owner = story === running ? 'ann' : undefined
    await store.append(story.ref, story.made, { owner, ...(withDigests && { digest: story.digest }) })
  }
  return stories
}

/** Each store has cursors of its own. */
function withoutCursor(summary: RunSummary | ThreadSummary | null | undefined): unknown {
  return summary === null || summary === undefined ? null : { ...summary, cursor: undefined }
}

export function summaryIds(summaries: readonly RunSummary[]): string[] {
  return summaries.map(({ runId }) => runId)
}

function withoutIds(summary: RunSummary | null): unknown {
  return JSON.parse(JSON.stringify(withoutCursor(summary)).replaceAll('other_run_', 'run_'))
}
