import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { defineTool } from 'thinharness'
import type { HarnessOptions, JsonSchema, ResumeOptions } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { ask, delegateTool, playing } from '../children/children-support.js'
import { logWith, stored, watchedLog } from './pause-support.js'
import { failureOf, harnessOf, tool } from '../../harness/support.js'

const YES = [{ callId: 'call_1', approved: true }] as const
type Policy = NonNullable<ResumeOptions['configPolicy']>

/** A harness of two tools, of which one asks for approval; `ran` counts what ran. */
function setUp(options: HarnessOptions<unknown> = {}, schema: z.ZodType = z.object({ n: z.number().default(1) })) {
  const ran: unknown[] = []
  const pay = defineTool({
    name: 'pay',
    description: 'Pays.',
    parameters: schema,
    requiresApproval: true,
    handler: (args) => void ran.push(args),
  })
  const model = new ScriptedModel().always(({ turn }) => (turn === 0 ? { calls: [{ name: 'pay' }] } : 'Paid.'))
  return { ran, harness: harnessOf({ model, tools: [pay, tool('look')], instructions: 'Be brief.', ...options }) }
}

async function paused() {
  return stored(await setUp().harness.run('Pay.', { runId: 'run_c' }))
}

const COMPATIBLE: readonly [string, Parameters<typeof setUp>, RegExp][] = [
  ['other instructions', [{ instructions: 'Be long.' }], /compatible: instructions/],
  ['other limits', [{ limits: { modelRequests: 9 } }], /compatible: limits/],
  [
    'another form of the answer',
    [{ outputType: z.object({ a: z.string() }), outputMode: 'tool' }],
    /compatible: output/,
  ],
]

describe('a resumed run with another configuration', () => {
  test.each<Policy>(['same', 'compatible', 'any'])('that is the same is accepted by `%s`', async (configPolicy) => {
    const { ran, harness } = setUp()
    await harness.resume(await paused(), YES, { configPolicy })
    expect(ran).toHaveLength(1)
  })

  test.each(COMPATIBLE)('%s is rejected by `same` only, with the differences', async (_, options, problem) => {
    const state = await paused()
    const strict = setUp(...options)
    const failed = await failureOf(strict.harness.resume(state, YES, { configPolicy: 'same' }))
    expect(failed).toMatchObject({ code: 'invalid_state', message: expect.stringMatching(problem) as string })
    expect(strict.ran).toEqual([])
    const { ran, harness } = setUp(...options)
    // With an output type the scripted answer does not fit: that the call ran is what counts here.
    await harness.resume(state, YES).catch(() => undefined)
    expect(ran).toHaveLength(1)
  })

  test('of another tool that no call waits for is compatible; without the waiting one it is breaking', async () => {
    const state = await paused()
    const model = new ScriptedModel().always('Paid.')
    const without = harnessOf({ model, tools: [tool('look')], instructions: 'Be brief.' })
    const failed = await failureOf(without.resume(state, YES))
    expect(failed.message).toMatch(/breaking: tool `pay` is gone/)
    const pay = defineTool({
      name: 'pay',
      description: 'Pays.',
      parameters: z.object({ n: z.number().default(1) }),
      requiresApproval: true,
      handler: () => 'paid',
    })
    const more = harnessOf({ model, tools: [pay, tool('other')], instructions: 'Be brief.' })
    expect((await failureOf(more.resume(state, YES, { configPolicy: 'same' }))).message).toMatch(
      /compatible: tool `look`, tool `other`/,
    )
    expect((await more.resume(state, YES)).text).toBe('Paid.')
  })

  test.each<[string, Parameters<typeof setUp>[1], object]>([
    ['another description', z.object({ n: z.number().default(1) }).describe('Other.'), { n: 1 }],
    ['another default', z.object({ n: z.number().default(7) }), { n: 7 }],
    ['a new optional argument', z.object({ n: z.number().default(1), memo: z.string().optional() }), { n: 1 }],
  ])('that has %s of the waiting tool is compatible: the recorded arguments fit it', async (_, schema, args) => {
    const state = await paused()
    const strict = setUp({}, schema)
    const failed = await failureOf(strict.harness.resume(state, YES, { configPolicy: 'same' }))
    expect([failed.code, strict.ran]).toEqual(['invalid_state', []])
    expect(failed.message).toMatch(/compatible: tool `pay`/)
    const { ran, harness } = setUp({}, schema)
    await harness.resume(state, YES)
    expect(ran).toEqual([args])
  })

  test('with a waiting tool that no longer takes the recorded arguments is breaking: the error names the tool and the difference', async () => {
    const state = await paused()
    const other = () => setUp({}, z.object({ n: z.number().default(1), to: z.string() }))
    for (const configPolicy of ['same', 'compatible'] as const) {
      const { ran, harness } = other()
      const failed = await failureOf(harness.resume(state, YES, { configPolicy }))
      expect([failed.code, ran]).toEqual(['invalid_state', []])
      expect(failed.message).toMatch(/breaking: tool `pay` does not take the arguments of call `call_1`: .*to.*string/)
    }
    const { ran, harness } = other()
    await harness.resume(state, YES, { configPolicy: 'any' })
    expect(ran).toEqual([])
  })

  test('is compatible for a call that a crash interrupted, in `recover` too', async () => {
    const log = watchedLog()
    const look = (description: string) => ({ ...tool('look'), description, onUnknownOutcome: 'retry' as const })
    const model = () => new ScriptedModel().always(({ turn }) => (turn === 0 ? { calls: [{ name: 'look' }] } : 'Done.'))
    await harnessOf({ model: model(), tools: [look('Looks.')], log }).run('Look.', { runId: 'run_c' })
    const cut = log.kept.findIndex(({ kind }) => kind === 'tool_call_started') + 1
    const left = await logWith(log.kept.slice(0, cut))
    const next = harnessOf({ model: model(), tools: [look('Looks closely.')], log: left })
    expect((await next.recover('run_c')).text).toBe('Done.')
  })

  test.each<Policy>(['same', 'compatible', 'any'])(
    'cannot remove the approval that the state of a held call requires; a call that requires one now asks for it (`%s`)',
    async (configPolicy) => {
      const model = () =>
        new ScriptedModel().always(({ turn }) =>
          turn === 0 ? { calls: [{ name: 'pay' }, { name: 'look' }] } : 'Done.',
        )
      const ran: string[] = []
      const make = (payNeeds: boolean, lookNeeds: boolean) =>
        harnessOf({
          model: model(),
          tools: [
            tool('pay', () => void ran.push('pay'), { requiresApproval: payNeeds }),
            tool('look', () => void ran.push('look'), { requiresApproval: lookNeeds }),
          ],
        })
      const state = stored(await make(true, false).run('Go.'))
      const failed = await failureOf(make(false, false).resume(state, YES, { configPolicy }))
      expect([failed.code, ran]).toEqual(['invalid_state', []])
      const held = await make(true, true).resume(state, YES, { configPolicy })
      expect([held.pending.map(({ toolName }) => toolName), ran]).toEqual([['look'], []])
    },
  )

  test('is checked by `recover` too', async () => {
    const log = watchedLog()
    const state = setUp({ log })
    await state.harness.run('Pay.', { runId: 'run_c' })
    const left = await logWith(log.kept.slice(0, 3))
    const failed = await failureOf(
      setUp({ log: left, instructions: 'x' }).harness.recover('run_c', { configPolicy: 'same' }),
    )
    expect(failed.message).toMatch(/compatible: instructions/)
  })

  test('is checked in the runs below with the same policy', async () => {
    const plays = { go: [['delegate'], 'Done.'], a: [['ask'], 'A.'] }
    const make = (parameters: JsonSchema) =>
      harnessOf({ model: playing(plays), tools: [delegateTool('delegate', { a: [{ ...ask, parameters }] })] })
    const more = { type: 'object', properties: { to: { type: 'string' } }, required: ['to'] }
    const state = stored(await make(ask.parameters).run('go'))
    const answers = [{ callId: 'call_1/a/call_1', answer: 'x' }]
    const refused = await make(more).resume(state, answers)
    expect(refused.toolCallRecords[0]?.output).toContain('configuration has changed')
    const let_on = await make(more).resume(state, answers, { configPolicy: 'any' })
    expect(let_on.toolCallRecords[0]?.output).toContain('A.')
  })

  test.each([['some'], ['']])('with the policy %j is rejected at once', (configPolicy) => {
    const { harness } = setUp()
    expect(() => harness.streamRecover('run_c', { configPolicy: configPolicy as Policy })).toThrow(/configPolicy/)
  })
})
