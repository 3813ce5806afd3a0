import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { defineTool, memoryLog } from 'thinharness'
import type { Harness, JsonObject, ModelCapabilities, ToolSource, ToolSpec } from 'thinharness'
import { deferred, subagent, toolSearch } from 'thinharness/tools'
import { ScriptedModel } from 'thinharness/testing'
import { estimateText } from '#contracts/estimate.js'
import { eventsOf, failureOf, harnessOf, ofKind, tool } from '../../harness/support.js'

/** Tools of real servers. */
const REAL = readFileSync(new URL('../../data/tool-search/tools.jsonl', import.meta.url), 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line) as { name: string; description: string; inputSchema: ToolSpec['parameters'] })
  .map(({ name, description, inputSchema }) => ({ ...tool(name), description, parameters: inputSchema }))

/** A deferred tool that pays. */
function payTool(paid: unknown[] = [], beside: Partial<ToolSpec> = {}): ToolSpec {
  const pay = defineTool({
    name: 'pay',
    description: 'Pays an invoice.',
    parameters: z.object({ amount: z.number(), currency: z.enum(['EUR', 'USD']).optional() }),
    handler: ({ amount }) => (paid.push(amount), { paid: amount }),
  })
  return deferred({ ...pay, ...beside })
}

const call = (name: string, args: JsonObject): [string, JsonObject] => ['call_tool', { name, arguments: args }]

/** The texts that a model has heard of its calls. */
function heardBy(model: ScriptedModel): readonly string[] {
  return model.heard.flatMap((heard) =>
    heard.kind === 'tool_outputs' ? heard.outputs.map(({ content }) => content) : [],
  )
}

test('a model finds a tool, calls it, and the request begins with the same bytes throughout', async () => {
  const paid: unknown[] = []
  const model = new ScriptedModel()
    .calls('search_tools', { query: 'settle a bill or invoice' })
    .calls(...call('pay', { amount: 5 }))
    .calls('pay', { amount: 6 })
    .says('Paid.')
  const harness = harnessOf({
    model,
    tools: [tool('look'), ...REAL.map((each) => deferred(each)), payTool(paid)],
    use: [toolSearch()],
  })

  const events = await eventsOf(harness.stream('Pay 5, then 6.'))

  expect(paid).toEqual([5, 6])
  const heads = model.requests.map(({ constants }) => JSON.stringify(constants))
  expect(new Set(heads).size).toBe(1)
  expect(model.requests[0]?.constants.tools.map(({ name }) => name)).toEqual(['look', 'search_tools', 'call_tool'])
  const [found] = heardBy(model)
  expect(found).toMatch(/^\d of 265 tools, the best first/)
  expect(found).toContain('{"name":"pay","description":"Pays an invoice.","parameters":{"type":"object"')
  const named = ofKind(events, 'tool_call_started').map(({ toolName, via }) => [toolName, via])
  expect(named).toEqual([
    ['search_tools', undefined],
    ['pay', 'call_tool'],
    ['pay', undefined],
  ])
})

test('400 tools add at most 1,500 tokens to each request', async () => {
  const tokensWith = async (
    tools: readonly ToolSpec[],
    use: readonly ReturnType<typeof toolSearch>[],
  ): Promise<number> => {
    const model = new ScriptedModel().says('Hello.')
    await harnessOf({ model, tools, use }).run('Hello.')
    return estimateText(JSON.stringify(model.requests[0]?.constants))
  }
  const hundreds = Array.from({ length: 400 }, (_, at) => ({
    ...(REAL[at % REAL.length] ?? tool('x')),
    name: `tool_${at}`,
  }))
  const added =
    (await tokensWith(
      hundreds.map((each) => deferred(each)),
      [toolSearch({ about: 'code, databases, tasks' })],
    )) - (await tokensWith([], []))
  const listed = await tokensWith(hundreds, [])
  process.stdout.write(`400 deferred tools add ${added} tokens to a request, listed ones ${listed}\n`)
  expect(added).toBeLessThanOrEqual(1_500)
  expect(listed).toBeGreaterThan(50_000)
})

describe('a deferred tool without a search is refused', () => {
  const message = 'Tool `pay` is deferred, and nothing finds it: add `toolSearch()` of `thinharness/tools` to `use`.'

  test('when the harness is made', () => {
    expect(() => harnessOf({ model: new ScriptedModel(), tools: [payTool()] })).toThrow(message)
  })

  test('before a run with its own tools begins', async () => {
    const model = new ScriptedModel()
    const error = await failureOf(harnessOf({ model }).run('Pay.', { tools: [payTool()] }))
    expect(error).toMatchObject({ code: 'invalid_options', message })
    expect(model.requests).toEqual([])
  })

  test('unless the run brings the search', async () => {
    const model = new ScriptedModel().calls(...call('pay', { amount: 1 })).says('Paid.')
    const result = await harnessOf({ model }).run('Pay.', { tools: [payTool()], use: [toolSearch()] })
    expect(result.text).toBe('Paid.')
  })

  test('when a server lists it', async () => {
    const server = deferred(serverOf([tool('pay')]))
    const error = await failureOf(harnessOf({ model: new ScriptedModel(), mcpServers: [server] }).run('Pay.'))
    expect(error).toMatchObject({ code: 'invalid_options', message })
  })
})

describe('calls that cannot be made are failed results that help', () => {
  const hear = async (name: string, args: JsonObject): Promise<string> => {
    const model = new ScriptedModel().calls(name, args).says('Sorry.')
    await harnessOf({ model, tools: [...REAL.map((each) => deferred(each)), payTool()], use: [toolSearch()] }).run(
      'Go.',
    )
    return heardBy(model)[0] ?? ''
  }

  test('an unknown name, with names that are near', async () => {
    const heard = await hear(...call('create_an_issue', {}))
    expect(heard).toMatch(/^unknown tool create_an_issue\. Did you mean `create_issue`\? Available: create_issue, /)
    expect(heard.split(',').length).toBeLessThanOrEqual(40)
  })

  test('wrong arguments, with the schema', async () => {
    const heard = await hear(...call('pay', { amount: 'five' }))
    expect(heard).toContain('Invalid arguments: `pay` was not run.')
    expect(heard).toContain('Its parameters: {')
    expect(heard).toContain('"enum":["EUR","USD"]')
  })

  test.each<[string, JsonObject, string]>([
    [
      'call_tool',
      { name: 'call_tool', arguments: {} },
      '`call_tool` cannot be called by `call_tool`: call it directly',
    ],
    ['call_tool', { arguments: {} }, 'Invalid arguments: `call_tool` was not run.'],
    ['call_tool', { name: 'pay', amount: 5 }, 'Invalid arguments: `call_tool` was not run.'],
    ['call_tool', { name: 'pay', arguments: '{"amount":5}' }, 'Invalid arguments: `call_tool` was not run.'],
    ['search_tools', { query: '' }, 'Invalid arguments: `search_tools` was not run.'],
    ['search_tools', { query: 'xylophone' }, 'No tool of 265 fits `xylophone`. Search in other words'],
  ])('`%s` with %j', async (name, args, text) => {
    expect(await hear(name, args)).toContain(text)
  })
})

describe('search_tools', () => {
  const answer = async (tools: readonly ToolSpec[], args: JsonObject, options = {}): Promise<string> => {
    const model = new ScriptedModel().calls('search_tools', args).says('Done.')
    await harnessOf({ model, tools, use: [toolSearch(options)] }).run('Go.')
    return heardBy(model)[0] ?? ''
  }
  const namesIn = (text: string): readonly string[] =>
    [...text.matchAll(/^\{"name":"([^"]+)"/gm)].map(([, name = '']) => name)

  test('answers with as many definitions as are wanted, of deferred tools only', async () => {
    const tools = [tool('create_listed'), ...REAL.map((each) => deferred(each))]
    expect(namesIn(await answer(tools, { query: 'create' }))).toHaveLength(5)
    expect(namesIn(await answer(tools, { query: 'create' }, { limit: 2 }))).toHaveLength(2)
    const many = namesIn(await answer(tools, { query: 'create', limit: 20 }))
    expect(many).toHaveLength(20)
    expect(many).not.toContain('create_listed')
  })

  test('has the examples of a tool, and what the tool adds to the system prompt', async () => {
    const pay = payTool([], { examples: [{ amount: 5 }], instructions: 'Pay in whole euros.' })
    const model = new ScriptedModel().calls('search_tools', { query: 'invoice' }).says('Done.')
    await harnessOf({ model, tools: [pay], use: [toolSearch()] }).run('Go.')
    expect(heardBy(model)[0]).toContain('"examples":[{"amount":5}]')
    expect(heardBy(model)[0]).toContain('Pay in whole euros.')
    expect(model.requests[0]?.constants.instructions).not.toContain('euros')
  })

  test('keeps an answer with huge definitions readable', async () => {
    const huge = (name: string, chars: number): ToolSpec =>
      deferred({ ...tool(name), parameters: { type: 'object', description: `invoice ${'x'.repeat(chars)}` } })
    const text = await answer([huge('first', 20_000), huge('second', 20_000), huge('third', 60_000)], {
      query: 'invoice',
    })
    expect(text.length).toBeLessThan(32_000)
    for (const name of ['first', 'second', 'third']) expect(text).toContain(`{"name":"${name}"`)
    for (const line of text.split('\n').slice(1)) expect(line).toMatch(/^\{"name":.*(\}|alone\))$/)
    expect(await answer([huge('third', 60_000)], { query: 'third' })).toContain('"parameters":"(too long)"')
  })

  test('tells the model what there is to find, if that is said', async () => {
    const model = new ScriptedModel().says('Hello.')
    await harnessOf({ model, tools: [payTool()], use: [toolSearch({ about: 'invoices' })] }).run('Go.')
    expect(model.requests[0]?.constants.tools[0]?.description).toContain('not listed here: invoices.')
  })

  test('finds by meaning with an embedder', async () => {
    const embed = (texts: readonly string[]): Promise<number[][]> =>
      Promise.resolve(texts.map((text) => (/pay|money/i.test(text) ? [1, 0] : [0, 1])))
    const tools = [...REAL.slice(0, 20).map((each) => deferred(each)), payTool()]
    expect(namesIn(await answer(tools, { query: 'money please' }))).not.toContain('pay')
    expect(namesIn(await answer(tools, { query: 'money please' }, { embed }))).toContain('pay')
    const broken = await answer(tools, { query: 'money' }, { embed: () => Promise.reject(new Error('no quota')) })
    expect(broken).toContain('`embed` of the tool search failed: no quota')
  })

  test.each([{ limit: 0 }, { limit: 21 }, { about: '' }, { embed: 1 }, { hosted: 'no' }, { lmit: 1 }])(
    'options %j are refused',
    (options) => {
      expect(() => toolSearch(options as object)).toThrow(/`toolSearch`|Unknown option/)
    },
  )
})

describe('what a model is given', () => {
  const listed = async (
    toolSearchOf: ModelCapabilities['toolSearch'],
    deferredTools: readonly ToolSpec[],
    options = {},
  ) => {
    const model = new ScriptedModel({ capabilities: { toolSearch: toolSearchOf } }).says('Hello.')
    await harnessOf({ model, tools: [tool('look'), ...deferredTools], use: [toolSearch(options)] }).run('Go.')
    return (model.requests[0]?.constants.tools ?? []).map(({ name, deferred: is }) =>
      is === true ? `${name}, deferred` : name,
    )
  }
  const own = ['look', 'search_tools', 'call_tool']
  const many = REAL.map((each) => deferred(each))

  test.each<[string, ModelCapabilities['toolSearch'], readonly ToolSpec[], object, readonly string[]]>([
    ['a provider that has no search', undefined, [payTool()], {}, own],
    ['a provider that keeps definitions', 'definitions', [payTool()], {}, ['look', 'pay, deferred']],
    ['a provider that keeps parameters', 'parameters', [payTool()], {}, ['look', 'pay, deferred']],
    ['a provider that keeps parameters, and long descriptions', 'parameters', many, {}, own],
    ['`hosted: false`', 'definitions', [payTool()], { hosted: false }, own],
  ])('by %s', async (_name, kept, tools, options, names) => {
    expect(await listed(kept, tools, options)).toEqual(names)
  })

  test('a provider that keeps definitions gets any number of them', async () => {
    expect(await listed('definitions', many)).toHaveLength(265)
  })
})

/** A server with these tools; its list can be changed. */
function serverOf(tools: readonly ToolSpec[], id = 'desk'): ToolSource & { list: readonly ToolSpec[] } {
  return {
    ...{ id, required: true, list: tools },
    tools() {
      return Promise.resolve(this.list)
    },
    close: () => Promise.resolve(),
  }
}

describe('a server', () => {
  test('has deferred tools, but for those that are named', async () => {
    const server = serverOf([...REAL.slice(0, 100), { ...tool('pay'), instructions: 'The desk pays.' }])
    const model = new ScriptedModel()
      .calls('search_tools', { query: 'pay' })
      .calls(...call('pay', {}))
      .says('Paid.')
    const harness = harnessOf({ model, mcpServers: [deferred(server, { except: ['get_me'] })], use: [toolSearch()] })
    expect((await harness.run('Pay.')).text).toBe('Paid.')
    expect(model.requests[0]?.constants.tools.map(({ name }) => name)).toEqual(['search_tools', 'call_tool', 'get_me'])
    expect(model.requests[0]?.constants.instructions).toContain('The desk pays.')
    const described = await harness.describe()
    expect(described.tools.filter((each) => each.deferred === true)).toHaveLength(100)
    expect(String(described)).toContain('server desk, without approval, found by search')
  })

  test('that gets a tool in the middle of a run changes no byte of the next request, and the tool is found', async () => {
    const server = serverOf([tool('look_up')])
    const model = new ScriptedModel()
      .calls('search_tools', { query: 'pay' })
      .calls('search_tools', { query: 'pay' })
      .says('Done.')
    const grow = {
      name: 'grow',
      wrapToolCall: (_: unknown, next: () => Promise<unknown>) => (
        (server.list = [tool('look_up'), tool('pay')]),
        next()
      ),
    }
    await harnessOf({ model, mcpServers: [deferred(server)], use: [toolSearch(), grow] }).run('Pay.')
    expect(heardBy(model)).toEqual([
      expect.stringMatching(/^No tool of 1 fits/),
      expect.stringContaining('{"name":"pay"'),
    ])
    expect(new Set(model.requests.map(({ constants }) => JSON.stringify(constants))).size).toBe(1)
  })
})

describe('a call by `call_tool` goes on', () => {
  const script = (): ScriptedModel =>
    new ScriptedModel().always(({ turn }) =>
      turn === 0 ? { calls: [{ name: 'call_tool', arguments: { name: 'pay', arguments: { amount: 5 } } }] } : 'Paid.',
    )
  const asking = (paid: unknown[]): Harness =>
    harnessOf({ model: script(), tools: [payTool(paid, { requiresApproval: true })], use: [toolSearch()], log })
  let log = memoryLog()

  test('after an approval, in another process', async () => {
    log = memoryLog()
    const paid: unknown[] = []
    const paused = await asking(paid).run('Pay.', { runId: 'run_a' })
    expect(paused.pending).toMatchObject([{ kind: 'approval', toolName: 'pay', arguments: '{"amount":5}' }])
    const { callId = '' } = paused.pending[0] ?? {}
    const result = await asking(paid).resume('run_a', [{ callId, approved: true }])
    expect([paid, result.text, result.toolCallRecords.map(({ call: { name, via } }) => [name, via])]).toEqual([
      [5],
      'Paid.',
      [['pay', 'call_tool']],
    ])
  })

  test('but not if the tool is gone: the run says so, or the model is told', async () => {
    log = memoryLog()
    const paused = await asking([]).run('Pay.', { runId: 'run_b' })
    const { callId = '' } = paused.pending[0] ?? {}
    const model = script()
    const without = harnessOf({ model, tools: [deferred(tool('refund'))], use: [toolSearch()], log })
    expect(await failureOf(without.resume('run_b', [{ callId, approved: true }]))).toMatchObject({
      code: 'invalid_state',
    })
    await without.resume('run_b', [{ callId, approved: true }], { configPolicy: 'any' })
    expect(heardBy(model)).toEqual([
      'unknown tool pay. Available: refund, search_tools, call_tool.\nCorrect this and call the tool again.',
    ])
  })

  test('in a replay, a fork and a further run of the conversation', async () => {
    log = memoryLog()
    const paid: unknown[] = []
    const harness = harnessOf({ model: script(), tools: [payTool(paid)], use: [toolSearch()], log })
    const result = await harness.run('Pay.', { runId: 'run_c' })
    const events = []
    for await (const stored of log.read({ kind: 'run', id: 'run_c' })) events.push(stored)
    expect((await harness.replay(events)).text).toBe('Paid.')
    expect(paid).toEqual([5])
    expect((await harness.fork(events, { afterTurn: 0 })).text).toBe('Paid.')
    expect(paid).toEqual([5, 5])
    const next = harnessOf({
      model: new ScriptedModel().calls('pay', { amount: 7 }).says('Again.'),
      tools: [payTool(paid)],
      use: [toolSearch()],
    })
    expect((await next.run('Again.', { history: result.transcript })).text).toBe('Again.')
    expect(paid).toEqual([5, 5, 7])
  })
})

describe('agents', () => {
  test('that have the tools of their parent find them too', async () => {
    const paid: unknown[] = []
    const model = ScriptedModel.each(({ instructions }) =>
      instructions.includes('payer')
        ? new ScriptedModel()
            .calls('search_tools', { query: 'invoice' })
            .calls(...call('pay', { amount: 3 }))
            .says('Paid 3.')
        : new ScriptedModel().calls('subagent', { agent: 'payer', task: 'Pay 3.' }).says('Done.'),
    )
    const payer = { name: 'payer', description: 'Pays.', instructions: 'You are the payer.', tools: 'inherit' } as const
    const harness = harnessOf({ model, tools: [payTool(paid), subagent({ agents: [payer] })], use: [toolSearch()] })
    expect((await harness.run('Pay.')).text).toBe('Done.')
    expect(paid).toEqual([3])
  })

  test('with a deferred tool and no search have it listed', async () => {
    const offered: (readonly string[])[] = []
    const model = new ScriptedModel().always(({ tools, turn }) => {
      offered.push(tools)
      return turn === 0 && tools.includes('start') ? { calls: [{ name: 'start' }] } : 'Done.'
    })
    const pay = payTool()
    const start = tool('start', async (_, { spawn }) => (await spawn({ prompt: 'Pay.', tools: [pay] }).result).text)
    await harnessOf({ model, tools: [pay, start], use: [toolSearch()] }).run('Go.')
    expect(offered[1]).toEqual(['pay'])
  })
})
