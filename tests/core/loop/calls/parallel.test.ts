import { describe, expect, test } from 'vitest'
import type { ToolSpec } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import type { ScriptedCall } from 'thinharness/testing'
import { eventsOf, gate, harnessOf, ofKind, output, ticks, tool, until } from '../../../harness/support.js'
import type { Gate } from '../../../harness/support.js'

/** Tools that wait until the test lets them go, and a diary of what was under way. */
class Workshop {
  readonly diary: string[] = []
  readonly #gates = new Map<string, Gate>()

  tool(name: string, beside: Parameters<typeof tool>[2] = {}): ToolSpec {
    return tool(
      name,
      async (_args, { callId }) => {
        this.diary.push(`${callId} starts`)
        const open = gate()
        this.#gates.set(callId, open)
        await open.opened
        this.diary.push(`${callId} ends`)
        return `${name} of ${callId}`
      },
      beside,
    )
  }

  /** Lets a call go, once it has started. */
  async finish(callId: string): Promise<void> {
    await until(() => this.#gates.has(callId))
    this.#gates.get(callId)?.open()
    await until(() => this.diary.includes(`${callId} ends`))
  }

  get underWay(): number {
    return (
      this.diary.filter((line) => line.endsWith('starts')).length -
      this.diary.filter((line) => line.endsWith('ends')).length
    )
  }
}

function callsOf(...names: readonly string[]): ScriptedCall[] {
  return names.map((name) => ({ name }))
}

describe('a batch', () => {
  test('PT-01 sequential is false by default and never sent to the model', async () => {
    using model = new ScriptedModel().says('Done.')
    const tools = [tool('a'), tool('b', undefined, { sequential: true })]
    expect(tools.map(({ sequential }) => sequential ?? false)).toEqual([false, true])
    await harnessOf({ model, tools }).run('Go.')
    expect(model.requests[0]?.constants.tools.map((definition) => Object.keys(definition))).toEqual([
      ['name', 'description', 'parameters'],
      ['name', 'description', 'parameters'],
    ])
  })

  test('PT-03 PT-06 PT-08 PT-12 calls run concurrently; outputs are in model order whichever ends first, in one request', async () => {
    const shop = new Workshop()
    using model = new ScriptedModel().callsAll(callsOf('a', 'b', 'a')).says('Done.')
    const running = harnessOf({ model, tools: [shop.tool('a'), shop.tool('b')] }).run('Go.')
    await until(() => shop.underWay === 3)
    for (const callId of ['call_2', 'call_3', 'call_1']) await shop.finish(callId)
    const result = await running
    expect(shop.diary).toEqual([
      'call_1 starts',
      'call_2 starts',
      'call_3 starts',
      'call_2 ends',
      'call_3 ends',
      'call_1 ends',
    ])
    expect(model.heard).toEqual([
      { kind: 'start', prompt: 'Go.' },
      {
        kind: 'tool_outputs',
        outputs: [output('call_1', 'a of call_1'), output('call_2', 'b of call_2'), output('call_3', 'a of call_3')],
      },
    ])
    expect(result.toolCallRecords.map(({ call }) => call.id)).toEqual(['call_1', 'call_2', 'call_3'])
  })

  test('PT-04 PT-10 a sequential call is a barrier inside the batch', async () => {
    const shop = new Workshop()
    using model = new ScriptedModel().callsAll(callsOf('a', 'a', 'alone', 'a', 'a')).says('Done.')
    const tools = [shop.tool('a'), shop.tool('alone', { sequential: true })]
    const running = harnessOf({ model, tools }).run('Go.')
    for (const callId of ['call_2', 'call_1', 'call_3', 'call_5', 'call_4']) {
      await shop.finish(callId)
      await ticks(3)
    }
    await running
    expect(shop.diary).toEqual([
      ...['call_1 starts', 'call_2 starts', 'call_2 ends', 'call_1 ends'],
      ...['call_3 starts', 'call_3 ends'],
      ...['call_4 starts', 'call_5 starts', 'call_5 ends', 'call_4 ends'],
    ])
  })

  test('PT-05 in sequential mode all calls run one by one', async () => {
    const shop = new Workshop()
    using model = new ScriptedModel().callsAll(callsOf('a', 'a')).says('Done.')
    const running = harnessOf({ model, tools: [shop.tool('a')], toolExecution: 'sequential' }).run('Go.')
    for (const callId of ['call_1', 'call_2']) {
      await until(() => shop.diary.includes(`${callId} starts`))
      await ticks(3)
      expect(shop.underWay).toBe(1)
      await shop.finish(callId)
    }
    await running
  })

  test('PT-07 a tool that throws does not affect its siblings', async () => {
    using model = new ScriptedModel().callsAll(callsOf('a', 'bad', 'a')).says('Done.')
    const bad = tool('bad', () => {
      throw new Error('No.')
    })
    await harnessOf({ model, tools: [tool('a'), bad] }).run('Go.')
    expect(model.heard[1]).toEqual({
      kind: 'tool_outputs',
      outputs: [output('call_1', 'ok'), output('call_2', 'Error: No.', { ok: false }), output('call_3', 'ok')],
    })
  })

  test('PT-11 of 40 calls at most 16 run at once, and all end in order', async () => {
    let underWay = 0
    let most = 0
    const busy = tool('busy', async (_args, { callId }) => {
      most = Math.max(most, ++underWay)
      await ticks(3)
      underWay -= 1
      return callId
    })
    const ids = Array.from({ length: 40 }, (_, index) => `call_${index + 1}`)
    using model = new ScriptedModel().callsAll(ids.map(() => ({ name: 'busy' }))).says('Done.')
    const stream = harnessOf({ model, tools: [busy] }).stream('Go.')
    const events = await eventsOf(stream)
    expect(most).toBe(16)
    expect(model.heard[1]).toEqual({ kind: 'tool_outputs', outputs: ids.map((callId) => output(callId, callId)) })
    expect(ofKind(events, 'tool_call_started').map(({ callId, toolIndex }) => [callId, toolIndex])).toEqual(
      ids.map((callId, index) => [callId, index]),
    )
  })

  test('PT-03 missing, repeated and unsafe call ids are replaced by distinct ones', async () => {
    const ids = ['', 'x', 'x', '__proto__', 'x_2', '']
    using model = new ScriptedModel()
      .callsAll(ids.map((callId) => ({ name: 'a', callId })))
      .calls('a', {}, { callId: 'x' })
      .says('Done.')
    const result = await harnessOf({ model, tools: [tool('a', (_args, { callId }) => callId)] }).run('Go.')
    const given = result.toolCallRecords.map(({ call }) => call.id)
    expect(new Set(given).size).toBe(7)
    expect(given[1]).toBe('x')
    expect(given).not.toContain('')
    expect(given).not.toContain('__proto__')
    expect(result.toolCallRecords.map(({ output: text }) => (JSON.parse(text) as { content: string }).content)).toEqual(
      given,
    )
  })
})
