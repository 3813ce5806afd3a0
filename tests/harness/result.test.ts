import { expect, expectTypeOf, test } from 'vitest'
import { z } from 'zod'
import { Harness } from 'thinharness'
import type { HarnessResult, PendingItem, ResumeState } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { harnessOf, tool } from './support.js'

test('a result is completed or paused, and its type follows its status', async () => {
  const outputType = z.object({ n: z.number() })
  const model = new ScriptedModel().calls('pay').says('{"n":1}')
  const tools = [tool('pay', undefined, { requiresApproval: true })]
  const harness = new Harness({ model, builtinTools: [], tools, outputType, outputMode: 'prompted' })
  const result = await harness.run('Go.')
  expectTypeOf(result).toEqualTypeOf<HarnessResult<{ n: number }>>()
  expectTypeOf<(typeof result)['output']>().toEqualTypeOf<{ n: number }>()
  if (result.status !== 'paused') return expect.fail('The run must wait for an approval.')
  expectTypeOf<(typeof result)['output']>().toEqualTypeOf<never>()
  expectTypeOf(result.resumeState).toEqualTypeOf<ResumeState>()
  expectTypeOf(result.pending[0]).toEqualTypeOf<PendingItem>()
  expectTypeOf(result.stopReason).toEqualTypeOf<'approval_required' | 'input_required'>()
  const done = await harness.resume(result.resumeState, [{ callId: result.pending[0].callId, approved: true }])
  expect(done).toMatchObject({ status: 'completed', stopReason: 'end_turn', output: { n: 1 }, pending: [] })
})

test('reading the output of a paused run throws, inspecting its result does not', async () => {
  const model = new ScriptedModel().calls('pay')
  const harness = harnessOf({ model, tools: [tool('pay', undefined, { requiresApproval: true })] })
  const paused = await harness.run('Go.', { runId: 'run_p' })
  expect(() => paused.output).toThrow(
    expect.objectContaining({ code: 'invalid_state', message: expect.stringContaining('`run_p` is paused') as string }),
  )
  expect(JSON.parse(JSON.stringify(paused))).not.toHaveProperty('output')
  expect(Object.keys({ ...paused })).not.toContain('output')
})
