import { describe, expect, test } from 'vitest'
import type { Model, ModelSession, RequestConstants, SpawnOptions, TranscriptEntry } from 'thinharness'
import { clearResults, recall } from 'thinharness/context'
import { ScriptedModel } from 'thinharness/testing'
import { subagent } from 'thinharness/tools'
import { lookingFor, windowedModel } from '../../extensions/context/windowed-model.js'
import { harnessOf, tool } from '../../harness/support.js'

const LOOKED = 'A lake with blue herons.'
const PROMPT = 'Watch the birds.'

interface Asked {
  readonly view: readonly TranscriptEntry[]
  readonly constants: RequestConstants
}

/** A model, and all that it is asked. */
function watched(model: Model): Model & { readonly asked: Asked[] } {
  const { provider, id, capabilities } = model
  const asked: Asked[] = []
  const openSession = (): ModelSession => {
    const session = model.openSession()
    return {
      turn: (view, constants, options) => {
        asked.push({ view: [...view], constants })
        return session.turn(view, constants, options)
      },
    }
  }
  return { provider, id, capabilities, openSession, asked }
}

/** The first request of a child that a handler starts after the model has looked around. */
async function spawned(options: Partial<SpawnOptions>) {
  const child = watched(new ScriptedModel().says('Three.'))
  const model = watched(new ScriptedModel().calls('look').calls('ask').says('Done.'))
  const ask = tool('ask', async (_, context) => {
    const { text } = await context.spawn({ prompt: 'Count the blue herons.', model: child, ...options }).result
    return text
  })
  const { toolCallRecords } = await harnessOf({ model, tools: [tool('look', () => LOOKED), ask] }).run(PROMPT)
  return { request: child.asked[0], output: toolCallRecords[1]?.output ?? '', own: model.asked }
}

function said(request: Asked | undefined): string {
  return JSON.stringify(request?.view)
}

describe('the history of a child run', () => {
  test.each([undefined, 'none'] as const)('SB-144 by default it knows its prompt only: %s', async (history) => {
    const { request } = await spawned({ history })
    expect(request?.view).toHaveLength(1)
    expect(said(request)).not.toContain(PROMPT)
  })

  test('SB-145 `spawn` takes a slice: the relevant parts before the call, as data, within its tokens', async () => {
    const { request } = await spawned({ history: { tokens: 200 }, instructions: 'Count.' })
    expect(request?.view).toHaveLength(1)
    expect(said(request)).toContain('Parts of the conversation that led to this task')
    expect(said(request)).toContain(LOOKED)
    // The reply that makes the call is not among them.
    expect(said(request)).not.toContain('ask(')
    expect(said(request)).toContain('Your task:\\nCount the blue herons.')
  })

  test('SB-145 a slice comes before the parts of a prompt', async () => {
    const image = { type: 'image', data: 'AAAA', mediaType: 'image/png' } as const
    const prompt = [{ type: 'text', text: 'Are these herons?' } as const, image]
    const { request } = await spawned({ prompt, history: { tokens: 200 } })
    const [entry] = request?.view ?? []
    expect(entry).toMatchObject({ content: [{ type: 'text' }, { type: 'text', text: 'Are these herons?' }, image] })
    expect(said(request)).toContain(LOOKED)
  })

  test('SB-146 `inherit`: the whole conversation, with options of its own', async () => {
    const { request, own } = await spawned({ history: 'inherit', instructions: 'Count.', tools: [tool('pen')] })
    expect(request?.constants.instructions).toBe('Count.')
    expect(request?.constants.tools.map(({ name }) => name)).toEqual(['pen'])
    const parent = own.at(-1)?.view ?? []
    expect(request?.view.slice(0, 4)).toEqual(parent.slice(0, 4))
    expect(said(request)).toContain('you are the copy')
    expect(request?.view.at(-1)).toMatchObject({ content: [{ type: 'text', text: 'Count the blue herons.' }] })
  })

  test('SB-147 `fork`: the whole conversation, with the constants of the parent', async () => {
    const model = new ScriptedModel().calls('subagent', { task: 'Your part.' }).says('Mine.').says('Done.')
    const tools = [subagent({ defaultAgent: { history: 'fork' } })]
    const { toolCallRecords } = await harnessOf({ model, tools }).run('Go.')
    expect(toolCallRecords[0]?.output).toContain('"tool_mode":"fork"')
    expect(model.requests[1]?.constants).toEqual(model.requests[0]?.constants)
    const { output } = await spawned({ history: 'fork' })
    expect(output).toContain("With `fork` a child has its parent's `model`")
  })

  test('SB-147 a history has a known form', async () => {
    expect((await spawned({ history: 'all' as never })).output).toContain('Expected `history`')
    expect(() => subagent({ agents: [{ name: 'a', description: 'A.', history: 'inherit' }] })).toThrow('`tools`')
  })

  test('SB-148 a subagent inherits the conversation with tools of its own, and the model reads that it knows it', async () => {
    const child = watched(new ScriptedModel().says('Three.'))
    const model = new ScriptedModel().calls('look').calls('subagent', { agent: 'critic', task: 'Judge.' }).says('Done.')
    const critic = { name: 'critic', description: 'Judges.', tools: [], model: child, history: 'inherit' } as const
    await harnessOf({ model, subagents: [critic], tools: [tool('look', () => LOOKED)] }).run(PROMPT)
    expect(child.asked[0]?.constants.tools).toEqual([])
    expect(said(child.asked[0])).toContain(LOOKED)
    expect(JSON.stringify(model.requests[0]?.constants.tools)).toContain(
      '- critic: Judges. (it knows this conversation)',
    )
  })
})

describe('views in child runs', () => {
  const look = tool('look', () => 'star '.repeat(400))
  const limits = { modelRequests: null, toolCalls: null }
  const use = [clearResults({ at: 2_000 })]

  /** A child that reads more than fits its window; its last request. */
  async function longChild(tools: SpawnOptions['tools']): Promise<Asked | undefined> {
    const child = watched(windowedModel({ window: 4_000, reply: lookingFor(12) }))
    const ask = tool(
      'ask',
      async (_, { spawn }) => (await spawn({ prompt: 'Count.', model: child, tools, limits }).result).text,
    )
    const model = new ScriptedModel().calls('ask').says('Done.')
    await harnessOf({ model, tools: [ask, look], use, limits }).run('Go.')
    return child.asked.at(-1)
  }

  test('SB-149 the view policies of a run hold in its child runs', async () => {
    const request = await longChild('inherit')
    expect(request?.constants.tools.map(({ name }) => name)).toContain('recall')
    expect(said(request)).toMatch(/to save space.*recall\(/)
  })

  test('SB-149 without `recall` their notes name no tool that the model does not have', async () => {
    const without = await longChild([look])
    expect(without?.constants.tools.map(({ name }) => name)).toEqual(['look'])
    expect(said(without)).toContain('[This result was removed to save space.]')
    expect(said(without)).not.toContain('recall')
    expect(said(await longChild([look, recall]))).toContain('recall(')
  })

  test('SB-150 a child that inherits the conversation has it as the model sees it', async () => {
    const child = watched(new ScriptedModel().says('Many.'))
    const looking = lookingFor(12)
    const call = { type: 'tool_call', callId: 'call_ask', name: 'ask', arguments: '{}' } as const
    const reply = (turn: number) => (turn === 11 ? [call] : looking(turn))
    const model = watched(windowedModel({ window: 4_000, reply }))
    const ask = tool(
      'ask',
      async (_, { spawn }) => (await spawn({ prompt: 'Count.', model: child, history: 'inherit' }).result).text,
    )
    await harnessOf({ model, tools: [ask, look], use, limits }).run('Go.')
    const sent = model.asked[11]?.view ?? []
    expect(JSON.stringify(sent)).toContain('to save space')
    expect(child.asked[0]?.view.slice(0, sent.length)).toEqual(sent)
  })
})
