import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { Harness } from 'thinharness'
import type { HarnessOptions } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { mcpStdio } from '#adapters/mcp/index.js'
import type { McpStdioOptions } from '#adapters/mcp/index.js'
import { eventsOf, failureOf, kinds, ofKind, told, tool } from '../../harness/support.js'
import { oddServer } from './support.js'
import { isAlive } from '../../support/process.js'

function harnessWith<Output = string>(options: HarnessOptions<Output>): Harness<Output> {
  return new Harness<Output>({ builtinTools: [], ...options })
}

/** A server with these tools, which say who they are. */
function serverOf(names: readonly string[], options: Partial<McpStdioOptions> = {}): ReturnType<typeof oddServer> {
  const tools = names.map((name) => `tool('${name}')`).join(', ')
  return oddServer(
    `{ 'tools/list': () => ({ tools: [${tools}] }), 'tools/call': ({ name }) => text(name + ' ' + process.pid) }`,
    options,
  )
}

/** A server that cannot be started. */
function brokenServer(options: Partial<McpStdioOptions> = {}): ReturnType<typeof mcpStdio> {
  return mcpStdio({ id: 'broken', command: process.execPath, args: ['-e', 'process.exit(3)'], ...options })
}

function heardOutputs(model: ScriptedModel): readonly unknown[] {
  return model.heard.flatMap((heard) => (heard.kind === 'tool_outputs' ? heard.outputs : []))
}

function toolNames(model: ScriptedModel): readonly (readonly string[])[] {
  return model.requests.map(({ constants }) => constants.tools.map(({ name }) => name))
}

describe('servers of a harness', () => {
  test('MC-13 MC-14 MC-22 their tools come last, are connected once for all runs, and are closed with the harness', async () => {
    const model = new ScriptedModel().calls('who').calls('who').says('One.').calls('who').says('Two.')
    const harness = harnessWith({ model, tools: [tool('own')], mcpServers: [serverOf(['who'])] })
    await harness.connect()

    await harness.run('First.')
    await harness.run('Second.')
    const pids = heardOutputs(model).map((output) => Number(/who (\d+)/.exec(JSON.stringify(output))?.[1]))

    expect(toolNames(model)[0]).toEqual(['own', 'who'])
    expect(new Set(pids).size).toBe(1)
    expect(pids.map(isAlive)).toEqual([true, true, true])
    await harness.close()
    expect(pids.map(isAlive)).toEqual([false, false, false])
  })

  test('MC-10 two harnesses share a server, which is closed with the last of them', async () => {
    const server = serverOf(['who'])
    const one = harnessWith({ model: new ScriptedModel().calls('who').says('One.'), mcpServers: [server] })
    const script = new ScriptedModel().calls('who').calls('who').says('Two.')
    const two = harnessWith({ model: script, mcpServers: [server] })
    await Promise.all([one.connect(), two.connect()])

    await one.run('Go.')
    await one.close()
    await two.run('Go.')
    const pid = Number(/who (\d+)/.exec(JSON.stringify(heardOutputs(script)))?.[1])

    expect(isAlive(pid)).toBe(true)
    await two.close()
    expect(isAlive(pid)).toBe(false)
  })

  test('MC-20 a closed harness rejects `run` and `connect`, and still accepts tools', async () => {
    const model = new ScriptedModel()
    const harness = harnessWith({ model, mcpServers: [serverOf(['who'])] })
    await harness.close()

    await expect(harness.run('Go.')).rejects.toMatchObject({ code: 'closed' })
    await expect(harness.connect()).rejects.toMatchObject({ code: 'closed' })
    expect(() => harness.addTool(tool('more'))).not.toThrow()
  })

  test('MC-23 a hook that names an unknown tool is allowed and never called', async () => {
    const asked: string[] = []
    const model = new ScriptedModel().calls('who').says('Done.')
    await using harness = harnessWith({
      model,
      mcpServers: [serverOf(['who'])],
      hooks: [
        { event: 'before_tool_call', tools: ['nobody'], handler: () => void asked.push('nobody') },
        { event: 'before_tool_call', tools: ['who'], handler: () => void asked.push('who') },
      ],
    })

    await harness.run('Go.')

    expect(asked).toEqual(['who'])
  })
})

describe('tool names', () => {
  test('MC-17 the name of a built-in tool fails the run before any request, and the error names the remedies', async () => {
    const model = new ScriptedModel()
    await using harness = new Harness({ model, builtinTools: ['read'], mcpServers: [serverOf(['read'])] })

    const error = await failureOf(harness.run('Go.'))

    expect([error.code, error.message]).toEqual([
      'invalid_options',
      'Server `odd` has a tool `read`, and so is called a tool of the harness. Give the server a `toolPrefix`, or leave the tool out with `excludeTools`.',
    ])
    expect(model.heard).toEqual([])
    await expect(harness.connect()).rejects.toMatchObject({ code: 'invalid_options' })
  })

  test.each([
    ['a prefix', { toolPrefix: 'their' }, ['read', 'their_read', 'their_who']],
    ['leaving one out', { excludeTools: ['read'] }, ['read', 'who']],
  ])(
    'MC-02 equal tool names of two servers are resolved by a prefix or a filter: %s',
    async (_name, options, expected) => {
      const model = new ScriptedModel().says('Done.')
      const mcpServers = [serverOf(['read', 'who'], options)]
      await using harness = new Harness({ model, builtinTools: ['read'], mcpServers })

      await harness.run('Go.')

      expect(toolNames(model)).toEqual([expected])
    },
  )

  test("MC-18 `final_result` is rejected as the name of a server's tool if there is an output type", async () => {
    const outputType = z.object({ n: z.number() })
    const model = new ScriptedModel()
    await using harness = harnessWith({ model, outputType, mcpServers: [serverOf(['final_result'])] })

    await expect(harness.run('Go.')).rejects.toThrow(
      'Server `odd` has a tool `final_result`, and so is called the call by which a model gives its answer.',
    )
  })

  test('MC-19 MC-30 two servers with one id get distinct ids, and equal tool names are rejected', async () => {
    const model = new ScriptedModel().calls('a_who').calls('b_who').says('Done.')
    await using harness = harnessWith({
      model,
      mcpServers: [serverOf(['who'], { toolPrefix: 'a' }), serverOf(['who'], { toolPrefix: 'b' })],
    })
    await using colliding = harnessWith({ model, mcpServers: [serverOf(['who']), serverOf(['who'])] })

    const { toolCallRecords } = await harness.run('Go.')

    expect(toolCallRecords.map(({ output }) => JSON.parse(output) as unknown)).toMatchObject([
      { metadata: { mcp_server_id: 'odd', mcp_tool_name: 'who' } },
      { metadata: { mcp_server_id: 'odd-2', mcp_tool_name: 'who' } },
    ])
    await expect(colliding.run('Go.')).rejects.toThrow(
      'Server `odd-2` has a tool `who`, and so is called a tool of `odd`',
    )
  })

  test('MC-29 a server that is listed twice is used once', async () => {
    const server = serverOf(['who'])
    const model = new ScriptedModel().says('Done.')
    await using harness = harnessWith({ model, mcpServers: [server, server] })

    await harness.run('Go.')

    expect(toolNames(model)).toEqual([['who']])
  })
})

describe('a server that fails', () => {
  test('it is reported once and left out; the run has the tools of the others', async () => {
    const model = new ScriptedModel().calls('who').calls('who').says('Done.')
    await using harness = harnessWith({ model, mcpServers: [brokenServer(), serverOf(['who'])] })

    const events = await eventsOf(harness.stream('Go.'))

    expect(ofKind(events, 'warning').map(({ message }) => message)).toEqual([
      expect.stringMatching(/^`broken` is left out: MCP server `broken` could not be reached: /),
    ])
    expect(toolNames(model)).toEqual([['who'], ['who'], ['who']])
  })

  test('failures without a listener are reported by the next run', async () => {
    const model = new ScriptedModel().says('Done.').says('Done.')
    await using harness = harnessWith({ model, mcpServers: [serverOf(['who'], { includeTools: ['whom'] })] })
    await harness.connect()

    const first = await eventsOf(harness.stream('Go.'))
    const second = await eventsOf(harness.stream('Go.'))

    expect(ofKind(first, 'warning').map(({ message }) => message)).toEqual([
      'MCP server `odd`: It has no tool `whom`. Did you mean `who`?',
    ])
    expect(ofKind(second, 'warning')).toEqual([])
  })

  test('MC-16 MC-39 a required server that fails ends the run between `run_start` and `run_end`; the others are closed with the harness', async () => {
    const heard: string[] = []
    const pids: number[] = []
    const model = new ScriptedModel().calls('who').says('Done.')
    const first = serverOf(['who'])
    const hooks = (['run_start', 'run_end'] as const).map((event) => ({ event, handler: () => void heard.push(event) }))
    const harness = harnessWith({ model, mcpServers: [first, brokenServer({ required: true })], hooks })
    await using beside = harnessWith({ model, mcpServers: [first] })
    await beside.run('Go.')
    pids.push(Number(/who (\d+)/.exec(JSON.stringify(heardOutputs(model)))?.[1]))

    const { events, thrown } = await told(harness.stream('Go.'))

    expect(kinds(events)).toBe('run_started run_failed')
    expect(thrown).toMatchObject({ code: 'error', message: expect.stringContaining('`broken`') as unknown })
    expect(heard).toEqual(['run_start', 'run_end'])
    await harness.close()
    await beside.close()
    expect(pids.map(isAlive)).toEqual([false])
  })

  test('MC-11 a run that is cancelled while a server starts ends at once, and a server that does not stop is killed', async () => {
    const server = oddServer(`{
      'tools/list': () => ({ tools: [tool('hang')] }),
      'tools/call': ({ _meta }) => {
        process.on('SIGTERM', () => undefined)
        process.stdin.removeAllListeners('end')
        setInterval(() => undefined, 1000)
        notify('notifications/progress', { progressToken: _meta.progressToken, progress: process.pid })
      },
    }`)
    const harness = harnessWith({ model: new ScriptedModel().calls('hang'), mcpServers: [server] })
    const abort = new AbortController()
    const stream = harness.stream('Go.', { signal: abort.signal })
    let pid = 0
    const reading = (async (): Promise<void> => {
      for await (const event of stream) {
        if (event.kind !== 'tool_progress') continue
        pid = (event.update as { progress: number }).progress
        abort.abort(new Error('enough'))
      }
    })()

    await expect(reading).rejects.toMatchObject({ code: 'cancelled' })
    await expect(stream.result).rejects.toMatchObject({ code: 'cancelled' })
    await harness.close()
    await expect.poll(() => isAlive(pid), { timeout: 10_000 }).toBe(false)
  })
})

const GROWING = `{
  'tools/list': () => ({ tools: [tool('grow'), ...(state.more ?? [])] }),
  'tools/call': ({ name, arguments: { add } }) => {
    if (name === 'grow') { state.more = (state.more ?? []).concat(tool(add)); notify('notifications/tools/list_changed') }
    return text(name)
  },
}`

describe('a changing list of tools', () => {
  test('it is used at the next turn, recorded with the request, and replayed without the server', async () => {
    const model = new ScriptedModel().calls('grow', { add: 'new' }).calls('new').says('Done.')
    const server = oddServer(GROWING)
    const harness = harnessWith({ model, tools: [tool('own')], mcpServers: [server] })

    const events = await eventsOf(harness.stream('Go.'))
    const asked = ofKind(events, 'model_request_started')

    expect(toolNames(model)).toEqual([
      ['own', 'grow'],
      ['own', 'grow', 'new'],
      ['own', 'grow', 'new'],
    ])
    expect(asked.map(({ config }) => (config === undefined ? null : Object.keys(config.tools)))).toEqual([
      ['own', 'grow'],
      ['own', 'grow', 'new'],
      null,
    ])
    expect(heardOutputs(model)).toMatchObject([{ content: 'grow' }, { content: 'new' }])
    await harness.close()
    await using elsewhere = harnessWith({ model, tools: [tool('own')], mcpServers: [brokenServer({ required: true })] })
    expect(await elsewhere.replay(events)).toMatchObject({ text: 'Done.' })
    await using other = harnessWith({ model, tools: [tool('other')], mcpServers: [brokenServer({ required: true })] })
    await expect(other.replay(events)).rejects.toMatchObject({ code: 'replay_mismatch' })
  })

  test('it does not end a run if its tools would collide: the run keeps the previous list', async () => {
    const model = new ScriptedModel().calls('grow', { add: 'own' }).calls('own').says('Done.')
    await using harness = harnessWith({ model, tools: [tool('own')], mcpServers: [oddServer(GROWING)] })

    const events = await eventsOf(harness.stream('Go.'))

    expect(toolNames(model)).toEqual([
      ['own', 'grow'],
      ['own', 'grow'],
      ['own', 'grow'],
    ])
    expect(ofKind(events, 'warning').map(({ message }) => message)).toEqual([
      expect.stringMatching(/^MCP server `odd`: It has a new tool `own`/),
      expect.stringMatching(/^The tools of servers have changed and cannot be used: Server `odd` has a tool `own`/),
    ])
    expect(kinds(events)).toMatch(/run_completed$/)
  })

  test('a list that cannot be read leaves the run the previous one', async () => {
    const model = new ScriptedModel().calls('fall').calls('fall').says('Done.')
    const server = oddServer(`{
      'tools/list': () => { if (state.fallen) throw process.exit(1); return { tools: [tool('fall')] } },
      'tools/call': () => { state.fallen = true; notify('notifications/tools/list_changed'); return text('fell') },
    }`)
    await using harness = harnessWith({ model, mcpServers: [server] })

    const events = await eventsOf(harness.stream('Go.'))

    expect(toolNames(model)).toEqual([['fall'], ['fall'], ['fall']])
    expect(ofKind(events, 'warning').map(({ message }) => message)[0]).toMatch(/^`odd` cannot list its tools now: /)
    expect(kinds(events)).toMatch(/run_completed$/)
  })
})

describe('a resumed run', () => {
  test('MC-36 MC-37 it connects before it looks up its tools, runs the sibling of the approved call, and answers an unknown one', async () => {
    const first = new ScriptedModel().callsAll(['send', 'who', 'nobody'].map((name) => ({ name, arguments: {} })))
    const send = tool('send', () => 'sent', { requiresApproval: true })
    const before = harnessWith({ model: first, tools: [send], mcpServers: [serverOf(['who'])] })
    const paused = await before.run('Go.')
    await before.close()
    const stored = JSON.stringify(paused.resumeState)
    const second = new ScriptedModel().says('Done.')
    await using after = harnessWith({ model: second, tools: [send], mcpServers: [serverOf(['who'])] })

    const result = await after.resume(JSON.parse(stored) as NonNullable<typeof paused.resumeState>, [
      { callId: 'call_1', approved: true },
    ])

    expect(stored).not.toMatch(/mcp|odd/)
    expect(result.text).toBe('Done.')
    expect(heardOutputs(second)).toMatchObject([
      { ok: true, content: 'sent' },
      { ok: true, content: expect.stringMatching(/^who \d+$/) as unknown },
      { ok: false, content: expect.stringContaining('unknown tool') as unknown },
    ])
  })

  test('it is rejected while the server of a waiting call is missing', async () => {
    const model = new ScriptedModel().calls('who').says('Done.')
    const before = harnessWith({ model, mcpServers: [serverOf(['who'], { requiresApproval: true })] })
    const paused = await before.run('Go.')
    await before.close()
    await using after = harnessWith({ model, mcpServers: [brokenServer()] })
    if (paused.resumeState === null) throw new Error('not paused')

    await expect(after.resume(paused.resumeState, [{ callId: 'call_1', approved: true }])).rejects.toThrow(
      'tool `who` is gone',
    )
  })
})

describe('subagents', () => {
  test("MC-24 MC-31 MC-32 MC-35 a subagent that inherits tools has each tool of its parent's servers once, over the same connection, and hooks see their names", async () => {
    const ended: unknown[] = []
    const model = ScriptedModel.each(({ transcript }) =>
      JSON.stringify(transcript[0]).includes('Look.')
        ? new ScriptedModel().calls('who').says('Looked.')
        : new ScriptedModel().calls('who').calls('subagent', { task: 'Look.', agent: 'scout' }).says('Done.'),
    )
    await using harness = harnessWith({
      model,
      mcpServers: [serverOf(['who'])],
      subagents: [{ name: 'scout', description: 'Looks.', tools: 'inherit' }],
      hooks: [{ event: 'after_subagent_run', handler: ({ tools }) => void ended.push(tools) }],
    })

    const result = await harness.run('Go.')
    const pids = [...JSON.stringify(heardOutputs(model)).matchAll(/who (\d+)/g)].map(([, pid]) => pid)

    expect(result.text).toBe('Done.')
    expect(toolNames(model).map((names) => names.filter((name) => name === 'who'))).toEqual(
      toolNames(model).map(() => ['who']),
    )
    expect(ended).toEqual([['who']])
    expect([pids.length, new Set(pids).size]).toEqual([2, 1])
  })

  test('MC-25 a subagent without a `tools` option is rejected', () => {
    const silent = { name: 'scout', description: 'Looks.' }
    expect(() => harnessWith({ model: new ScriptedModel(), subagents: [silent] })).toThrow(
      'Expected `tools` of subagent `scout` to be a list of tools or `inherit`, got nothing.',
    )
  })
})
