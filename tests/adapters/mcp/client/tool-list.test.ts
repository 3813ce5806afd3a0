import { expect, test } from 'vitest'
import type { JsonObject, ToolSpec } from 'thinharness'
import { publicToolName } from '#adapters/mcp/client/tool-list.js'
import type { McpStdioOptions } from '#adapters/mcp/index.js'
import { call, hostOf, oddServer, toolsOf } from '../support.js'

async function offered(
  tools: readonly JsonObject[],
  options: Partial<McpStdioOptions> = {},
): Promise<readonly ToolSpec[]> {
  const server = oddServer(`{ 'tools/list': () => ({ tools: ${JSON.stringify(tools)} }) }`, options)
  try {
    return await toolsOf(server)
  } finally {
    await server.close()
  }
}

function tool(name: string, more: JsonObject = {}): JsonObject {
  return { name, inputSchema: { type: 'object' }, ...more }
}

test('MC-01 tool names get the prefix and safe characters, schemas are unchanged, and annotations become ours', async () => {
  const inputSchema = {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'In',
    type: 'object',
    properties: { a: { $ref: '#/definitions/a' } },
    definitions: { a: { type: 'string' } },
  }
  const annotations = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: 'yes' }

  const [spec] = await offered([{ name: 'read file/now', description: 'Reads.', inputSchema, annotations }], {
    toolPrefix: 'files',
  })

  expect(spec).toMatchObject({
    name: 'files_read_file_now',
    description: 'Reads.',
    parameters: inputSchema,
    annotations: { readOnly: true, destructive: false, idempotent: true },
    metadata: { source: 'mcp', mcp_server_id: 'odd', mcp_tool_name: 'read file/now' },
  })
  expect(spec?.sequential).toBeUndefined()
})

test('MC-01 every result names its server and tool', async () => {
  const server = oddServer(`{ 'tools/list': () => ({ tools: [tool('a b')] }), 'tools/call': ({ name }) => text(name) }`)

  expect(await call(server, 'a_b')).toEqual({
    kind: 'succeeded',
    content: 'a b',
    metadata: { source: 'mcp', mcp_server_id: 'odd', mcp_tool_name: 'a b' },
  })
  await server.close()
})

test('MC-02 filters use the names without the prefix, and one that matches nothing is reported', async () => {
  const host = hostOf()
  const server = oddServer(`{ 'tools/list': () => ({ tools: [tool('read'), tool('write'), tool('drop')] }) }`, {
    toolPrefix: 'x',
    includeTools: ['read', 'drop', 'wrote'],
    excludeTools: ['drop'],
  })

  expect((await toolsOf(server, host)).map(({ name }) => name)).toEqual(['x_read'])
  expect(host.warnings).toEqual(['MCP server `odd`: It has no tool `wrote`. Did you mean `write`?'])
  await server.close()
})

test('MC-07 a tool without a name, or whose schema no model can be given, is left out with a warning; a filtered tool is not checked', async () => {
  const deep = JSON.parse(`${'{"type":"object","items":'.repeat(600)}{}${'}'.repeat(600)}`) as JsonObject
  const tools = [
    tool('good'),
    { inputSchema: { type: 'object' } },
    { name: 5, inputSchema: { type: 'object' } },
    { name: 'text', inputSchema: { type: 'string' } },
    { name: 'none' },
    { name: 'list', inputSchema: [] },
    { name: 'deep', inputSchema: deep },
    { name: 'filtered', inputSchema: { type: 'string' } },
  ]
  const host = hostOf()
  const server = oddServer(`{ 'tools/list': () => ({ tools: ${JSON.stringify(tools)} }) }`, {
    excludeTools: ['filtered'],
  })

  expect((await toolsOf(server, host)).map(({ name }) => name)).toEqual(['good'])
  expect(host.warnings).toEqual([
    'MCP server `odd`: It lists a tool without a name, which is not offered.',
    'MCP server `odd`: It lists a tool without a name, which is not offered.',
    expect.stringMatching(/^MCP server `odd`: Its tool `text` is not offered\. .*`inputSchema`.*object at the root/),
    expect.stringMatching(/`none`.*got undefined/),
    expect.stringMatching(/`list`.*got a list/),
    expect.stringMatching(/`deep`.*at most 500 levels/),
  ])
  await server.close()
})

test('MC-08 two tools with the same name for the model are rejected, and both are named', async () => {
  await expect(offered([tool('a.b'), tool('a_b')])).rejects.toThrow(
    'has two tools, `a.b` and `a_b`, that a model would call `a_b`',
  )
})

test.each([
  ['MC-09 leading underscores and dashes survive', '_-x', '', '_-x'],
  ['an empty name is a name', '', '', 'mcp_tool'],
  ['a name of 64 characters is whole', 'n'.repeat(64), '', 'n'.repeat(64)],
  ['a longer name is cut and hashed', 'n'.repeat(65), '', `${'n'.repeat(55)}_1e3fb6d5`],
])('%s', (_case, name, prefix, expected) => {
  expect(publicToolName(name, prefix)).toBe(expected)
})

test('names that are equal for 64 characters stay distinct', () => {
  const [left, right] = [publicToolName(`${'n'.repeat(70)}1`, 'p'), publicToolName(`${'n'.repeat(70)}2`, 'p')]

  expect(left).not.toBe(right)
  expect([left, right].map((name) => name.length)).toEqual([64, 64])
})

test('two servers with the same tool are distinguished by their prefixes', async () => {
  const [left] = await offered([tool('search')], { toolPrefix: 'web' })
  const [right] = await offered([tool('search')], { toolPrefix: 'mail' })

  expect([left?.name, right?.name]).toEqual(['web_search', 'mail_search'])
})

test('approval can be required for calls that the host selects', async () => {
  const [spec] = await offered([tool('drop', { annotations: { destructiveHint: true } })], {
    requiresApproval: ({ toolName, annotations, args }) =>
      toolName === 'drop' && annotations.destructive === true && args['all'] === true,
  })
  const rule = spec?.requiresApproval
  const context = { runId: 'r', callId: 'c', metadata: {} }

  expect(typeof rule === 'function' && [await rule({ all: true }, context), await rule({}, context)]).toEqual([
    true,
    false,
  ])
})
