import { describe, expect, test } from 'vitest'
import { Harness } from 'thinharness'
import type { HarnessOptions } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import type { McpStdioOptions } from '#adapters/mcp/index.js'
import { tool } from '../../harness/support.js'
import { isAlive } from '../../support/process.js'
import { oddServer } from './support.js'

/** A server with one tool, which says who it is. */
function serverOf(name: string, options: Partial<McpStdioOptions> = {}): ReturnType<typeof oddServer> {
  return oddServer(
    `{ 'tools/list': () => ({ tools: [tool('${name}')] }), 'tools/call': ({ name }) => text(name + ' ' + process.pid) }`,
    { id: name, ...options },
  )
}

function toolNames(model: ScriptedModel): readonly (readonly string[])[] {
  return model.requests.map(({ constants }) => constants.tools.map(({ name }) => name))
}

function pidsIn(model: ScriptedModel, name: string): readonly number[] {
  const outputs = model.heard.flatMap((heard) => (heard.kind === 'tool_outputs' ? heard.outputs : []))
  return [...JSON.stringify(outputs).matchAll(new RegExp(`${name} (\\d+)`, 'g'))].map(([, pid]) => Number(pid))
}

type Agent = NonNullable<HarnessOptions['subagents']>[number]
const delegate = (agent: string) => ({ agent, task: 'Look.' })

describe('servers of a subagent', () => {
  test('MC-27 a subagent with servers alone has only their tools; its parent does not have them', async () => {
    const childModel = new ScriptedModel().calls('mine').says('Looked.')
    const scout: Agent = { name: 'scout', description: 'Looks.', model: childModel, mcpServers: [serverOf('mine')] }
    const model = new ScriptedModel().calls('subagent', delegate('scout')).says('Done.')
    await using harness = new Harness({
      model,
      tools: [tool('own')],
      mcpServers: [serverOf('theirs')],
      subagents: [scout],
    })

    await harness.run('Go.')

    expect(toolNames(model)[0]).toEqual(['subagent', 'own', 'theirs'])
    expect(toolNames(childModel)).toEqual([['mine'], ['mine']])
  })

  test('MC-26 MC-28 inherited tools come first, then those of its own servers', async () => {
    const childModel = new ScriptedModel().says('Looked.')
    const shared = serverOf('theirs')
    const scout: Agent = {
      ...{ name: 'scout', description: 'Looks.', model: childModel },
      ...{ tools: 'inherit', mcpServers: [shared, serverOf('mine')] },
    }
    const model = new ScriptedModel().calls('subagent', delegate('scout')).says('Done.')
    await using harness = new Harness({ model, mcpServers: [shared], subagents: [scout] })

    await harness.run('Go.')

    // The server that both list is used once.
    expect(toolNames(childModel)).toEqual([['theirs', 'mine']])
  })

  test('its servers are connected by the first child, shared by all, and closed with the harness', async () => {
    const childModel = new ScriptedModel().calls('mine').says('One.').calls('mine').says('Two.')
    const server = serverOf('mine')
    const agents: readonly Agent[] = ['scout', 'clerk'].map((name) => ({
      ...{ name, description: 'Looks.', model: childModel, mcpServers: [server] },
    }))
    const calls = new ScriptedModel().calls('subagent', delegate('scout')).calls('subagent', delegate('clerk'))
    const harness = new Harness({ model: calls.says('Done.'), subagents: agents })

    await harness.run('Go.')

    const pids = pidsIn(childModel, 'mine')
    expect([pids.length, new Set(pids).size, pids.map(isAlive)]).toEqual([2, 1, [true, true]])
    await harness.close()
    expect(pids.map(isAlive)).toEqual([false, false])
  })

  test('the description of a harness names them and does not connect them', async () => {
    const broken = serverOf('mine', { args: ['-e', 'process.exit(3)'], required: true })
    const scout: Agent = { name: 'scout', description: 'Looks.', tools: [], mcpServers: [broken] }
    await using harness = new Harness({ model: new ScriptedModel(), subagents: [scout] })

    const description = await harness.describe()

    expect(description.agents).toEqual([{ name: 'scout', tools: [], servers: ['mine'] }])
    expect([description.servers, description.warnings]).toEqual([[], []])
    expect(String(description)).toContain('server    mine: of this agent, connected by its first run')
  })

  test('equal names of its tools fail the child, and the model reads why', async () => {
    const scout: Agent = {
      ...{ name: 'scout', description: 'Looks.', model: new ScriptedModel() },
      ...{ tools: [tool('mine')], mcpServers: [serverOf('mine')] },
    }
    const model = new ScriptedModel().calls('subagent', delegate('scout')).says('Done.')
    await using harness = new Harness({ model, subagents: [scout] })

    await harness.run('Go.')

    expect(JSON.stringify(model.heard)).toContain('Two tools have the name `mine`')
  })

  test('a fork has its caller’s servers', () => {
    const scout: Agent = { name: 'scout', description: 'Looks.', history: 'fork', mcpServers: [serverOf('mine')] }
    expect(() => new Harness({ model: new ScriptedModel(), subagents: [scout] })).toThrow(
      "With `fork` subagent `scout` has its caller's servers.",
    )
  })
})
