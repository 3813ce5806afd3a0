import { readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { fileLog, Harness, memoryLog } from 'thinharness'
import type { LogStore } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { answerTo } from '../../docs/snippets/durability/answers.js'
import { research } from '../../docs/snippets/durability/child-run.js'
import { closeOnSignal, runOnce, wasLeft } from '../../docs/snippets/durability/deploy.js'
import { recoverAll } from '../../docs/snippets/durability/recover-all.js'
import { transferTool } from '../../docs/snippets/durability/safe-tool.js'
import { payInvoice } from '../../docs/snippets/durability/same-call.js'
import { resumeRun, savePausedRun } from '../../docs/snippets/durability/store-and-resume.js'
import { work } from '../../docs/snippets/durability/worker.js'
import { inTemporaryFolder } from '../support/folder.js'
import { eventsOfRun } from '../support/collect.js'

inTemporaryFolder()

/** A bank that executes each idempotency key once. */
function bank() {
  const done = new Map<string, string>()
  return {
    done,
    transfer: async ({ cents, to, idempotencyKey }: { cents: number; to: string; idempotencyKey: string }) => {
      const receipt = done.get(idempotencyKey) ?? `${cents} to ${to}`
      done.set(idempotencyKey, receipt)
      return receipt
    },
    find: async (key: string) => done.get(key),
  }
}

function transferring(log: LogStore, ours: ReturnType<typeof bank>): Harness {
  const model = new ScriptedModel().always(({ turn }) =>
    turn === 0 ? { calls: [{ name: 'transfer', arguments: { cents: 5, to: 'Ann' } }] } : 'Sent.',
  )
  return new Harness({ builtinTools: [], model, tools: [transferTool(ours)], log })
}

test('store-and-resume.ts, answers.ts and safe-tool.ts: a paused run is stored in a file and resumed in another process', async () => {
  const ours = bank()
  const paused = await transferring(memoryLog(), ours).run('Send five.', { runId: 'run_send' })
  await savePausedRun(paused)
  const answers = paused.pending.map((item) => answerTo(item, true))
  const result = await resumeRun(transferring(memoryLog(), ours), 'run_send', answers)
  expect(result.text).toBe('Sent.')
  expect([...ours.done]).toEqual([['run_send:call_1', '5 to Ann']])
})

test('recover-all.ts and safe-tool.ts: interrupted runs are recovered once', async () => {
  const ours = bank()
  const first = memoryLog()
  const paused = await transferring(first, ours).run('Send five.', { runId: 'run_send' })
  await transferring(first, ours).resume(paused.resumeState!, [{ callId: 'call_1', approved: true }])
  const log = fileLog('runs')
  const kept = await eventsOfRun(first, 'run_send')
  const cut = kept.findIndex(({ kind }) => kind === 'tool_call_completed')
  await log.append({ kind: 'run', id: 'run_send' }, kept.slice(0, cut))
  const [result] = await recoverAll(transferring(log, ours), log)
  expect(result?.text).toBe('Sent.')
  expect(result?.toolCallRecords[0]?.output).toContain('5 to Ann')
  expect(ours.done.size).toBe(1)
  expect(await recoverAll(transferring(log, ours), log)).toEqual([])
})

test('deploy.ts: a run that a closed harness has left is continued by the next one', async () => {
  const log = fileLog('runs')
  const never = new Promise<never>(() => undefined)
  let asked = (): void => undefined
  const isAsked = new Promise<void>((resolve) => (asked = resolve))
  const model = new ScriptedModel().replies(() => (asked(), never))
  const first = new Harness({ builtinTools: [], model, log })
  let stop = (): void => undefined
  const stopped = new Promise<void>((resolve) => (stop = resolve))
  closeOnSignal(first, () => stopped)
  const [handler] = process.listeners('SIGTERM').slice(-1)
  process.removeListener('SIGTERM', handler!)
  const run = runOnce(first, log, 'run_job', 'Go.')
  await isAsked
  await first.close()
  stop()
  expect(wasLeft(await run.catch((error: unknown) => error))).toBe(true)
  const next = new Harness({ builtinTools: [], model: new ScriptedModel().says('Done.'), log })
  expect((await runOnce(next, log, 'run_job', 'Go.')).text).toBe('Done.')
  expect((await runOnce(next, log, 'run_job', 'Go.')).text).toBe('Done.')
})

test('worker.ts: workers begin what waits, and each run once', async () => {
  const log = fileLog('runs')
  const over = new AbortController()
  let left = 6
  const model = new ScriptedModel().always(() => {
    left -= 1
    return 'Done.'
  })
  const harness = new Harness({ builtinTools: [], model, log })
  for (let index = 0; index < left; index++)
    await harness.queue(`Job ${index}.`, { labels: { tenant: `t_${index % 2}` } })
  const workers = Promise.all([1, 2].map(() => work(harness, log, over.signal)))
  await expect.poll(async () => (await log.waiting()).length).toBe(0)
  over.abort()
  await workers
  expect(left).toBe(0)
  for await (const { status } of log.list()) expect(status).toBe('completed')
})

test('child-run.ts: questions are researched in parallel', async () => {
  const model = new ScriptedModel().always(({ turn, messages }) => {
    const [prompt] = messages.flatMap((message) => (message.role === 'user' ? [String(message.content)] : []))
    if (prompt !== 'Compare.') return `${prompt} Yes.`
    return turn === 0 ? { calls: [{ name: 'research', arguments: { questions: ['Hot?', 'Cold?'] } }] } : 'Both.'
  })
  const result = await new Harness({ builtinTools: [], model, tools: [research] }).run('Compare.')
  expect(result.text).toBe('Both.')
  expect(result.toolCallRecords[0]?.output).toContain('Hot? Yes.\\n\\nCold? Yes.')
})

test('answers.ts answers an item of each kind', () => {
  const item = { callId: 'call_1', toolName: 'a', arguments: '{}', path: ['run_a'] }
  expect(answerTo({ ...item, kind: 'approval' }, false)).toEqual({ callId: 'call_1', approved: false })
  expect(answerTo({ ...item, kind: 'question' }, 'red')).toEqual({ callId: 'call_1', answer: 'red' })
  const verdict = { outcome: 'run_again' } as const
  expect(answerTo({ ...item, kind: 'unknown_outcome' }, verdict)).toEqual({ callId: 'call_1', answer: verdict })
})

test('same-call.ts: a second call gives the stored result', async () => {
  const options = { model: new ScriptedModel().says('Paid.') }
  expect([(await payInvoice(options)).text, (await payInvoice(options)).text]).toEqual(['Paid.', 'Paid.'])
})

test('every snippet of docs/durability.md is run', () => {
  const snippets = readdirSync(fileURLToPath(new URL('../../docs/snippets/durability/', import.meta.url)))
  expect(snippets.sort()).toEqual([
    'answers.ts',
    'child-run.ts',
    'deploy.ts',
    'recover-all.ts',
    'safe-tool.ts',
    'same-call.ts',
    'store-and-resume.ts',
    'worker.ts',
  ])
})
