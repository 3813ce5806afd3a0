import { describe, expect, test } from 'vitest'
import { defineExtension, defineTool, Harness } from 'thinharness'
import type { ToolSource } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { subagent } from 'thinharness/tools'
import { failureOf, harnessOf, tool } from '../harness/support.js'
import { sessionsOf, temporaryFolder } from './support.js'

function where(seen: string[]) {
  return tool('where', (_args, { root }) => {
    seen.push(root)
    return 'here'
  })
}

/** A server with one tool, and how often it was closed. */
function serverOf(name: string): ToolSource & { closed: number; roots: string[] } {
  const tools = [
    defineTool({ name, description: 'Looks.', parameters: { type: 'object' }, handler: () => `of ${name}` }),
  ]
  const server = {
    ...{ id: name, required: false, closed: 0, roots: [] as string[] },
    tools: ({ roots }: { roots: readonly string[] }) => {
      server.roots.push(...roots)
      return Promise.resolve(tools)
    },
    close: () => {
      server.closed += 1
      return Promise.resolve()
    },
  }
  return server
}

describe('a run with a workspace of its own', () => {
  test('its tools and those of its child runs work there, and other runs do not', async () => {
    const seen: string[] = []
    const model = new ScriptedModel()
      .calls('where')
      .calls('subagent', { task: 'Look.' })
      .calls('where')
      .says('Child.')
      .says('Done.')
      .calls('where')
      .says('Elsewhere.')
    const [harnessRoot, root] = [temporaryFolder(), temporaryFolder()]
    const harness = harnessOf({ model, root: harnessRoot, tools: [where(seen), subagent()], builtinTools: [] })
    await harness.run('Go.', { root })
    await harness.run('Go.')
    expect(seen).toEqual([root, root, harnessRoot])
    expect(model.requests[0]?.constants.instructions).toContain(`Workspace root: ${root}`)
  })

  test('a root that is no text is refused', async () => {
    const harness = harnessOf({ model: new ScriptedModel() })
    expect((await failureOf(harness.run('Go.', { root: 5 as never }))).message).toContain('`root`')
  })
})

describe('a run with servers of its own', () => {
  test('has their tools, with its workspace as their root; the harness does not close them', async () => {
    const model = new ScriptedModel().calls('look').says('Seen.').says('None.')
    const server = serverOf('look')
    const harness = new Harness({ model, builtinTools: [] })
    const root = temporaryFolder()
    await harness.run('Go.', { mcpServers: [server], root })
    await harness.run('Go.')
    await harness.close()
    expect(JSON.stringify(model.requests[1]?.entries)).toContain('of look')
    expect(model.requests[2]?.constants.tools).toEqual([])
    expect([server.roots[0], server.closed]).toEqual([root, 0])
  })

  test('servers of the harness receive the workspace of the harness alone', async () => {
    const model = new ScriptedModel().says('One.').says('Two.')
    const [server, root, other] = [serverOf('look'), temporaryFolder(), temporaryFolder()]
    const harness = harnessOf({ model, root, builtinTools: [], mcpServers: [server] })
    await harness.run('Go.')
    await harness.run('Go.', { root: other })
    await harness.close()
    expect([[...new Set(server.roots)], server.closed]).toEqual([[root], 1])
  })

  test('a tool with the name of another is refused', async () => {
    const harness = harnessOf({ model: new ScriptedModel(), tools: [tool('look', () => '')] })
    expect((await failureOf(harness.run('Go.', { mcpServers: [serverOf('look')] }))).message).toContain('`look`')
  })
})

test('the runs of a conversation have what it was given last', async () => {
  const seen: string[] = []
  const model = new ScriptedModel().calls('where').says('One.').calls('where').says('Two.')
  const chat = await sessionsOf({ harness: harnessOf({ model, tools: [where(seen)] }) }).open()
  const [first, second] = [temporaryFolder(), temporaryFolder()]
  const named: string[] = []
  const use = [defineExtension({ name: 'mine', forRun: ({ runId }) => (named.push(runId), {}) })]
  chat.provide({ root: first, use })
  await (
    await chat.send('Go.')
  ).done
  chat.provide({ root: second })
  await (
    await chat.send('Go.')
  ).done
  expect([seen, named.length]).toEqual([[first, second], 1])
})
