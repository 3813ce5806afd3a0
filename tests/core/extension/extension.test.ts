import { describe, expect, test } from 'vitest'
import { defineExtension, memoryLog } from 'thinharness'
import type { Extension, HarnessOptions, Hook, JsonValue, WrapModelCall, WrapToolCall } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { collect } from '../../support/collect.js'
import { eventsOf, failureOf, harnessOf, ofKind, tool } from '../../harness/support.js'
import { delegateTool, playing } from '../../run/children/children-support.js'

const wrap =
  (name: string, order: string[]): WrapModelCall =>
  (call, next) => {
    order.push(`${name} ${call.agentName ?? 'top'}`)
    return next(call)
  }

describe('extensions', () => {
  test('XT-01 an extension brings tools, hooks and wraps', async () => {
    const asked: string[] = []
    const hook: Hook = { event: 'before_tool_call', handler: ({ toolName }) => void asked.push(toolName) }
    const extension = defineExtension({
      name: 'clock',
      tools: [tool('now', () => 'noon')],
      hooks: [hook],
      wrapModelCall: wrap('clock', asked),
    })
    const model = new ScriptedModel().calls('now', {}).says('It is noon.')
    const harness = harnessOf({ model, use: [extension] })
    expect((await harness.run('Time?')).toolCallRecords[0]?.output).toContain('noon')
    expect(asked).toEqual(['clock top', 'now', 'clock top'])
    expect((await harness.describe()).tools.map(({ name }) => name)).toEqual(['now'])
  })

  test('XT-02 the options come first, then the extensions in order; those of a call are outside all', async () => {
    const order: string[] = []
    const named = (name: string): Extension => ({ name, wrapModelCall: wrap(name, order) })
    const harness = harnessOf({
      model: new ScriptedModel().says('Done.'),
      wrapModelCall: [wrap('options', order)],
      use: [named('a'), named('b')],
    })
    await harness.run('Go.', { use: [named('call')] })
    expect(order).toEqual(['call top', 'options top', 'a top', 'b top'])
  })

  test.each<[string, unknown, string]>([
    ['no list', 'x', 'Expected `use` of OWNER to be a list of extensions, got `x`.'],
    ['no name', [{}], 'Expected `name` of an extension to be a string.'],
    ['a misspelt member', [{ name: 'a', hook: [] }], 'Unknown member of an extension: `hook`. Did you mean `hooks`?'],
    [
      'a member of a wrong type',
      [{ name: 'a', policy: {} }],
      'Expected `policy` of an extension to be a function, got object.',
    ],
    ['a name twice', [{ name: 'a' }, { name: 'a' }], 'Two extensions in `use` have the name `a`.'],
    [
      'a tool twice',
      [
        { name: 'a', tools: [tool('t')] },
        { name: 'b', tools: [tool('t')] },
      ],
      'Two tools have the name `t`; each needs a name of its own.',
    ],
  ])('XT-03 an invalid extension is rejected (%s)', async (_name, use, message) => {
    const model = new ScriptedModel()
    const refused = (owner: string): object => ({ code: 'invalid_options', message: message.replace('OWNER', owner) })
    expect(() => harnessOf({ model, use: use as Extension[] })).toThrow(expect.objectContaining(refused('`Harness`')))
    await expect(harnessOf({ model }).run('Go.', { use: use as Extension[] })).rejects.toMatchObject(refused('a run'))
  })

  test('XT-04 `defineExtension` suggests the nearest name for an unknown member', () => {
    const misspelt = { name: 'a', notice: () => [] }
    expect(() => defineExtension(misspelt)).toThrow('Unknown member of an extension: `notice`. Did you mean `notices`?')
  })

  test('XT-05 closing the harness closes its extensions, and not those of a call', async () => {
    const closed: string[] = []
    const named = (name: string): Extension => ({ name, close: async () => void closed.push(name) })
    const harness = harnessOf({ model: new ScriptedModel().says('Done.'), use: [named('a'), named('b')] })
    await harness.run('Go.', { use: [named('call')] })
    await harness.close()
    await harness.close()
    expect(closed).toEqual(['a', 'b'])
  })

  test('XT-06 a child run has the wraps of an extension, and neither its tools nor its notices', async () => {
    const order: string[] = []
    const model = playing({ go: [['delegate'], 'Done.'], a: ['A.'] })
    const use = [
      {
        name: 'x',
        wrapModelCall: wrap('x', order),
        tools: [tool('own')],
        notices: () => [{ name: 'n', text: 'Hello.' }],
      },
    ]
    await harnessOf({ model, tools: [delegateTool('delegate', { a: [] })], use }).run('go')
    expect(order).toEqual(['x top', 'x default', 'x top'])
    expect(model.requests.map(({ constants }) => constants.tools.map(({ name }) => name))).toEqual([
      ['delegate', 'own'],
      [],
      ['delegate', 'own'],
    ])
    const texts = model.requests.map(({ entries }) => JSON.stringify(entries).includes('Hello.'))
    expect(texts).toEqual([true, false, false])
  })
})

describe('forRun', () => {
  test('may return a promise: what it brings holds from the first call on, in child runs too', async () => {
    const paid: string[] = []
    const pay = tool('pay', () => void paid.push('paid'))
    const guard: Extension = {
      name: 'guard',
      forRun: async () => {
        await Promise.resolve()
        return { policy: () => 'deny' }
      },
    }
    const model = playing({ go: [['pay', 'delegate'], 'Done.'], a: [['pay'], 'A.'] })
    const harness = harnessOf({ model, tools: [pay, delegateTool('delegate', { a: [pay] })], use: [guard] })
    const events = await eventsOf(harness.stream('go'))
    expect(paid).toEqual([])
    expect(ofKind(events, 'tool_call_completed').map(({ errorType }) => errorType)).toContain('Denied')
  })

  test('whose promise is rejected, or does not end before the run is cancelled, lets no run begin', async () => {
    const log = memoryLog()
    const broken: Extension = { name: 'odd', forRun: () => Promise.reject(new Error('Oops.')) }
    const harness = harnessOf({ model: new ScriptedModel().says('Done.'), log })
    const error = await failureOf(harness.run('Go.', { use: [broken], runId: 'run_1' }))
    expect([error.code, error.message]).toEqual(['hook_failed', '`forRun` of extension `odd` failed: Oops.'])
    const slow: Extension = { name: 'slow', forRun: () => new Promise(() => undefined) }
    const stopped = harness.run('Go.', { use: [slow], runId: 'run_2', signal: AbortSignal.timeout(5) })
    expect((await failureOf(stopped)).code).toBe('cancelled')
    expect(await collect(log.list())).toEqual([])
  })

  test('a member that it returns as undefined replaces none', async () => {
    const guard: Extension = { name: 'guard', policy: () => 'deny', forRun: () => ({ policy: undefined }) }
    const model = new ScriptedModel().calls('t', {}).says('Done.')
    const events = await eventsOf(harnessOf({ model, tools: [tool('t')], use: [guard] }).stream('Go.'))
    expect(ofKind(events, 'tool_call_completed')).toMatchObject([{ ok: false }])
  })

  /** Counts the calls of a run, and says so with each. */
  const counter = defineExtension({
    name: 'counter',
    forRun: ({ recorded, record }) => {
      let count = recorded.length
      return {
        tools: [tool('count', () => String(count))],
        hooks: [
          {
            event: 'before_tool_call',
            handler: async () => {
              count += 1
              await record({ count })
              return undefined
            },
          },
        ],
      }
    },
  })

  test('XT-07 it gives each run its own state', async () => {
    const model = ScriptedModel.each(() => new ScriptedModel().calls('count', {}).calls('count', {}).says('Done.'))
    const harness = harnessOf({ model, use: [counter] })
    const [one, other] = await Promise.all([harness.run('a'), harness.run('b')])
    for (const { toolCallRecords } of [one, other]) {
      expect(toolCallRecords.map(({ output }) => (JSON.parse(output) as { content: string }).content)).toEqual([
        '1',
        '2',
      ])
    }
  })

  test('XT-08 records of a run are available when it is recovered', async () => {
    const log = memoryLog()
    const found: JsonValue[][] = []
    const watch = defineExtension({
      name: 'watch',
      forRun: ({ recorded, record }) => {
        found.push([...recorded])
        return { hooks: [{ event: 'after_tool_call', handler: () => record('seen').then(() => undefined) }] }
      },
    })
    const harness = harnessOf({
      model: new ScriptedModel().calls('count', {}).calls('held', {}).says('Done.'),
      tools: [tool('held', () => 'ok', { requiresApproval: true })],
      use: [counter, watch],
      log,
    })
    const events = await eventsOf(harness.stream('Go.', { runId: 'run_1' }))
    expect(ofKind(events, 'extension_recorded').map(({ extension, value }) => [extension, value])).toEqual([
      ['counter', { count: 1 }],
      ['watch', 'seen'],
      ['counter', { count: 2 }],
    ])
    await harness.resume('run_1', [{ callId: 'call_2', approved: true }])
    expect(found).toEqual([[], ['seen']])
  })

  test('XT-09 its failure ends the run', async () => {
    const use = [
      defineExtension({
        name: 'odd',
        forRun: () => {
          throw new Error('Oops.')
        },
      }),
    ]
    const error = await failureOf(harnessOf({ model: new ScriptedModel(), use }).run('Go.'))
    expect([error.code, error.message]).toEqual(['hook_failed', '`forRun` of extension `odd` failed: Oops.'])
  })

  test('XT-10 `record` is rejected before the run starts', async () => {
    let refused: unknown
    const use = [
      defineExtension({
        name: 'early',
        forRun: ({ record }) => {
          record('x').catch((error: unknown) => (refused = error))
          return {}
        },
      }),
    ]
    await harnessOf({ model: new ScriptedModel().says('Done.'), use }).run('Go.')
    expect(refused).toMatchObject({ code: 'invalid_state' })
  })
})

test('a hook that failed is reported with the name of the extension that brought it; one of the options has none', async () => {
  const hook: Hook = { event: 'run_start', handler: () => Promise.reject(new Error('Oops.')) }
  const harness = harnessOf({
    model: new ScriptedModel().says('Done.'),
    hooks: [hook],
    use: [{ name: 'mine', hooks: [hook] }],
  })
  const events = ofKind(await eventsOf(harness.stream('Go.')), 'hook_failed')
  expect(events.map(({ extension }) => extension)).toEqual([undefined, 'mine'])
})

test('a wrap of calls that failed is reported with the name of its extension, however many pass the error on', async () => {
  const broken: WrapToolCall = () => Promise.reject(new Error('Oops.'))
  const passing: WrapToolCall = (_call, next) => next()
  const reported = async (options: Partial<HarnessOptions>): Promise<unknown> => {
    const model = new ScriptedModel().calls('look').says('Done.')
    const events = await eventsOf(harnessOf({ model, tools: [tool('look')], ...options }).stream('Go.'))
    return ofKind(events, 'hook_failed').map(({ hookEvent, extension }) => [hookEvent, extension])
  }
  const others = [
    { name: 'outer', wrapToolCall: passing },
    { name: 'mine', wrapToolCall: broken },
    { name: 'inner', wrapToolCall: passing },
  ]
  expect(await reported({ use: others })).toEqual([['wrapToolCall', 'mine']])
  expect(await reported({ wrapToolCall: [broken], use: others.slice(2) })).toEqual([['wrapToolCall', undefined]])
  const thrower = { name: 'mine', wrapToolCall: (): never => failNow() }
  expect(await reported({ wrapToolCall: [passing], use: [thrower] })).toEqual([['wrapToolCall', 'mine']])
})

function failNow(): never {
  throw new Error('At once.')
}
