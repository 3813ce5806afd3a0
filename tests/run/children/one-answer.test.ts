import { describe, expect, test } from 'vitest'
import { ModelRetry } from 'thinharness'
import type { Harness, HarnessError, HarnessOptions, HarnessResult, Hook, JsonValue, ToolSpec } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { deferred, toolSearch } from 'thinharness/tools'
import { harnessOf, tool } from '../../harness/support.js'
import { runScript } from './program-support.js'

/** The ways in which a call of `pay` can be made. */
const WAYS = ['direct call', 'call of a program', 'call by call_tool'] as const
type Way = (typeof WAYS)[number]

type Fate = { readonly paid: readonly unknown[]; readonly heard: readonly string[]; readonly end: JsonValue }
type Given = Partial<HarnessOptions> & { readonly pay?: Partial<ToolSpec> }

/** What came of one call of `pay`, made in one of the ways: what was paid, what the caller heard, how the run ended. */
async function fateOf(
  way: Way,
  { pay: beside = {}, tools = [], ...options }: Given,
  answer: 'approved' | 'rejected' | null = null,
): Promise<Fate> {
  const paid: unknown[] = []
  const heard: string[] = []
  const pay = tool('pay', ({ amount }) => (paid.push(amount), { paid: Number(amount) }), {})
  const script = runScript(async (call) =>
    call('pay', { amount: 5 }).then(
      (value) => void heard.push(JSON.stringify(value)),
      (error: unknown) => void heard.push((error as Error).message),
    ),
  )
  const model = new ScriptedModel().always(({ turn }) => (turn === 0 ? { calls: [CALLS[way]] } : 'Done.'))
  const found = way === 'call by call_tool' ? deferred({ ...pay, ...beside }) : { ...pay, ...beside }
  const use = [...(options.use ?? []), toolSearch()]
  const harness = harnessOf({ model, ...options, use, tools: [found, script, ...tools] })
  const end = await endOf(harness, answer, (output) => {
    if (way !== 'call of a program') heard.push((JSON.parse(output) as { content: string }).content)
  })
  return { paid, heard: [...new Set(heard)], end }
}

const CALLS = {
  'direct call': { name: 'pay', arguments: { amount: 5 } },
  'call of a program': { name: 'run_script' },
  'call by call_tool': { name: 'call_tool', arguments: { name: 'pay', arguments: { amount: 5 } } },
} as const

async function endOf(
  harness: Harness,
  answer: 'approved' | 'rejected' | null,
  hear: (output: string) => void,
): Promise<JsonValue> {
  try {
    let result: HarnessResult = await harness.run('Pay.')
    const asked = result.pending.map(({ kind, toolName, arguments: text }) => ({ kind, toolName, text }))
    if (result.status === 'paused' && answer !== null) {
      const answers = result.pending.map(({ callId }) => ({ callId, approved: answer === 'approved' }))
      result = await harness.resume(result.resumeState, answers)
    }
    for (const { output } of result.toolCallRecords) hear(output)
    return { status: result.status, asked }
  } catch (error) {
    return { code: (error as HarnessError).code }
  }
}

const before = (handler: (Hook & { event: 'before_tool_call' })['handler']): Given => ({
  hooks: [{ event: 'before_tool_call', tools: ['pay'], handler }],
})
const after = (handler: (Hook & { event: 'after_tool_call' })['handler']): Given => ({
  hooks: [{ event: 'after_tool_call', tools: ['pay'], handler }],
})
const policy = (decide: () => 'allow' | 'ask' | 'deny'): Given => ({
  use: [{ name: 'rules', policy: ({ name }) => (name === 'pay' ? decide() : null) }],
})
const wrap = (work: (next: () => Promise<unknown>) => unknown): Given => ({
  wrapToolCall: [(call, next) => (call.tool.name === 'pay' ? work(next) : next())],
})
const thrown = (): never => {
  throw new TypeError('broken')
}

const DONE = { status: 'completed', asked: [] }
const ASKED = { status: 'completed', asked: [{ kind: 'approval', toolName: 'pay', text: '{"amount":5}' }] }

interface Row {
  readonly given: Given
  readonly answer?: 'approved' | 'rejected'
  readonly paid: readonly unknown[]
  readonly heard?: string
  readonly end: JsonValue
}

const ROWS: Readonly<Record<string, Row>> = {
  'nothing in its way': { given: {}, paid: [5], heard: '{"paid":5}', end: DONE },
  'a hook before it that cancels': {
    given: before(() => ({ cancel: 'not today' })),
    ...{ paid: [], heard: 'Tool execution blocked by hook: not today', end: DONE },
  },
  'a hook before it that changes its arguments': {
    given: before(() => ({ args: { amount: 1 } })),
    ...{ paid: [1], heard: '{"paid":1}', end: DONE },
  },
  'a hook before it that fails': { given: before(thrown), paid: [], heard: 'hook failed: broken', end: DONE },
  'a hook after it that changes its result': {
    given: after(() => ({ envelope: { ok: true, content: '{"paid":"[amount]"}', metadata: {} } })),
    ...{ paid: [5], heard: '{"paid":"[amount]"}', end: DONE },
  },
  'a hook after it that fails': { given: after(thrown), paid: [5], heard: 'its result is withheld', end: DONE },
  'a policy that allows it': { given: policy(() => 'allow'), paid: [5], heard: '{"paid":5}', end: DONE },
  'a policy that asks, and a person who agrees': {
    given: policy(() => 'ask'),
    ...{ answer: 'approved', paid: [5], heard: '{"paid":5}', end: ASKED },
  },
  'a policy that asks, and a person who refuses': {
    given: policy(() => 'ask'),
    ...{ answer: 'rejected', paid: [], heard: 'A human reviewer rejected this tool call.', end: ASKED },
  },
  'a policy that asks': { given: policy(() => 'ask'), paid: [], end: { ...ASKED, status: 'paused' } },
  'a policy that denies it': {
    given: policy(() => 'deny'),
    ...{ paid: [], heard: 'The call was not made: a policy denies it.', end: DONE },
  },
  'a policy that fails': { given: policy(thrown), paid: [], end: { code: 'hook_failed' } },
  'a wrap that answers instead': { given: wrap(() => ({ paid: 0 })), paid: [], heard: '{"paid":0}', end: DONE },
  'a wrap that fails': { given: wrap(thrown), paid: [], heard: 'TypeError: broken', end: DONE },
  'a tool that needs an approval': {
    given: { pay: { requiresApproval: true } },
    ...{ answer: 'approved', paid: [5], heard: '{"paid":5}', end: ASKED },
  },
  'a tool that needs an approval, and a person who refuses': {
    given: { pay: { requiresApproval: true } },
    ...{ answer: 'rejected', paid: [], heard: 'A human reviewer rejected this tool call.', end: ASKED },
  },
}

describe.each(Object.entries(ROWS))('%s', (_name, { given, answer = null, paid, heard, end }) => {
  test.each(WAYS)('is the same for a %s', async (way) => {
    const fate = await fateOf(way, given, answer)
    expect(fate).toMatchObject({ paid, end })
    if (heard === undefined) expect(fate.heard).toEqual([])
    else expect(fate.heard).toEqual([expect.stringContaining(heard)])
  })
})

describe('limits', () => {
  test.each(WAYS)('of calls end the run before a %s', async (way) => {
    const toolCalls = way === 'call of a program' ? 1 : 0
    const fate = await fateOf(way, { limits: { toolCalls } })
    expect(fate).toMatchObject({ paid: [], heard: [], end: { code: 'limit_reached' } })
  })

  test.each(WAYS)('of calls are asked of the `limit_reached` hooks with the same numbers by a %s', async (way) => {
    const asked: unknown[] = []
    const handler = ({ limitKind, limitValue, currentCount }: Record<string, unknown>): void =>
      void asked.push([limitKind, limitValue, currentCount])
    const toolCalls = way === 'call of a program' ? 1 : 0
    await fateOf(way, { limits: { toolCalls }, hooks: [{ event: 'limit_reached', handler }] })
    expect(asked).toEqual([['tool_calls', toolCalls, toolCalls + 1]])
  })

  test.each(WAYS)('of time end the run during a %s', async (way) => {
    const pay = { call: () => new Promise<never>(() => undefined) }
    const fate = await fateOf(way, { limits: { timeMs: 300 }, pay })
    expect(fate).toMatchObject({ paid: [], heard: [], end: { code: 'limit_reached' } })
  })

  test.each(WAYS)('of money hold for the runs that are started by a %s', async (way) => {
    const dear = new ScriptedModel({ provider: 'test', id: 'dear' }).says('Too dear.')
    const free = { inputPerMillion: 0, outputPerMillion: 0 }
    const prices = { models: { 'scripted:scripted-1': free, 'test:dear': { inputPerMillion: 9, outputPerMillion: 9 } } }
    const asks = tool('pay', async (_, { spawn }) => (await spawn({ prompt: 'Think.', model: dear }).result).text)
    const fate = await fateOf(way, { prices, limits: { costUsd: 0.001 }, pay: { call: asks.call } })
    expect(fate).toMatchObject({ heard: [expect.stringContaining('cost_usd=0.001')], end: DONE })
    expect(dear.requests).toEqual([])
  })
})

describe('budgets of retries', () => {
  const pay = { maxRetries: 0, call: () => Promise.reject(new ModelRetry('again')) }

  test.each(['direct call', 'call by call_tool'] as const)('are used up by a %s', async (way) => {
    expect((await fateOf(way, { pay })).end).toEqual({ code: 'tool_retries_exceeded' })
  })

  test('are not used by a program that catches the failure', async () => {
    expect(await fateOf('call of a program', { pay })).toMatchObject({ heard: ['again'], end: DONE })
  })
})

describe('what an extension keeps of a run', () => {
  test.each(WAYS)('is one for the run and a %s', async (way) => {
    let opened = 0
    const decided: string[] = []
    const once = {
      name: 'once',
      forRun: () => {
        opened += 1
        return { policy: ({ name }: { name: string }) => (decided.push(name), null) }
      },
    }
    await fateOf(way, { use: [once] })
    expect(opened).toBe(1)
    expect(decided).toContain('pay')
  })
})
