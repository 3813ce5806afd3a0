import { expect, test } from 'vitest'
import { z } from 'zod'
import type { Answer, ToolSpec } from 'thinharness'
import { delegateTool, playing } from './children-support.js'
import { logWith, stored, watchedLog } from '../resume/pause-support.js'
import { harnessOf, tool } from '../../harness/support.js'

/**
 * Plays a run whose child waits, answers it, and cuts the log at every event behind that. Gives back what each recovery
 * waits for in the end, by how much the log held.
 */
async function cutBehindAnswer(own: ToolSpec, line: readonly (string | readonly string[])[], answer: Answer) {
  const plays = { go: [['delegate'], 'Done.'], a: line }
  const tools = [delegateTool('delegate', { a: [own] })]
  const log = watchedLog()
  const paused = await harnessOf({ model: playing(plays), tools, log }).run('go', { runId: 'run_p' })
  const pausedAt = log.kept.length
  await harnessOf({ model: playing(plays), tools, log }).resume(stored(paused), [answer])
  const ends: string[] = []
  for (let cut = pausedAt + 1; cut <= log.kept.length; cut++) {
    const left = await logWith(log.kept.slice(0, cut))
    const result = await harnessOf({ model: playing(plays), tools, log: left }).recover('run_p')
    ends.push(result.pending.map(({ callId, payload }) => `${callId} ${JSON.stringify(payload)}`).join())
  }
  return ends
}

test('an answer to a child is not used for its next question', async () => {
  const answered: unknown[] = []
  const wizard = tool(
    'wizard',
    async (_, context) => {
      answered.push(await context.ask('First?', z.string()))
      answered.push(await context.ask('Second?', z.string()))
    },
    { onUnknownOutcome: 'retry' },
  )
  const answer = { callId: 'call_1/a/call_1', answer: 'one' }
  const ends = await cutBehindAnswer(wizard, [['wizard'], 'A.'], answer)
  expect(new Set(ends)).toEqual(new Set(['call_1/a/call_1 "First?"', 'call_1/a/call_1 "Second?"']))
  expect(ends.at(-1)).toBe('call_1/a/call_1 "Second?"')
  // Asked again only before the answer was kept.
  expect(ends.lastIndexOf('call_1/a/call_1 "First?"')).toBeLessThan(ends.indexOf('call_1/a/call_1 "Second?"'))
})

test("an approval of a child's call does not cover a later call", async () => {
  const ran: unknown[] = []
  const pay = tool('pay', (_, { callId }) => void ran.push(callId), {
    requiresApproval: true,
    onUnknownOutcome: 'report',
  })
  const answer = { callId: 'call_1/a/call_1', approved: true }
  const ends = await cutBehindAnswer(pay, [['pay'], ['pay'], 'A.'], answer)
  expect(ends.at(-1)).toBe('call_1/a/call_2 undefined')
  expect(ends.filter((end) => end === '')).toEqual([])
  expect(new Set(ran)).toEqual(new Set(['call_1']))
})

test('a child that ended while its parent was interrupted is found with its outcome', async () => {
  let asked = 0
  const look = tool('look', () => ++asked, { annotations: { readOnly: true } })
  const plays = { go: [['delegate'], 'Done.'], a: [['look'], 'A.'], b: ['B.'] }
  const tools = [delegateTool('delegate', { a: [look], b: [] })]
  const log = watchedLog()
  await harnessOf({ model: playing(plays), tools, log }).run('go', { runId: 'run_p' })
  const cut = log.kept.findIndex(({ kind, runId }) => kind === 'tool_call_completed' && runId === 'run_p')
  asked = 0
  const model = playing(plays)
  const left = await logWith(log.kept.slice(0, cut))
  const result = await harnessOf({ model, tools, log: left }).recover('run_p')
  expect([asked, model.requests.length]).toEqual([0, 1])
  expect(result.usage.children).toEqual({ modelRequests: 3, toolCalls: 1 })
})

test('a child whose last owner may still live is awaited, not given up', async () => {
  const plays = { go: [['delegate'], 'Done.'], a: [['look'], 'A.'] }
  const tools = [delegateTool('delegate', { a: [tool('look', () => 'seen', { annotations: { readOnly: true } })] })]
  const log = watchedLog()
  await harnessOf({ model: playing(plays), tools, log }).run('go', { runId: 'run_p' })
  const cut = log.kept.findIndex(({ kind }) => kind === 'tool_call_completed')
  const left = await logWith(log.kept.slice(0, cut))
  const childId = log.kept.find(({ runId }) => runId !== 'run_p')!.runId
  await left.claim({ kind: 'run', id: childId }, 'somebody elsewhere', 400)
  const result = await harnessOf({ model: playing(plays), tools, log: left }).recover('run_p')
  expect(result.toolCallRecords[0]?.output).toContain('A.')
})
