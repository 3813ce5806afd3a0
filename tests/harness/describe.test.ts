import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { bash, fetchUrl, fileTools } from 'thinharness/tools'
import { ScriptedModel } from 'thinharness/testing'
import { join } from 'node:path'
import { Harness } from 'thinharness'
import type { StreamEvent } from 'thinharness'
import { temporaryFolder } from '../support/folder.js'
import { mcpHttp, mcpStdio } from '#adapters/mcp/index.js'
import { folderWith } from '../toolbox/support.js'
import { skillText } from '../toolbox/skills/support.js'
import { oddServer } from '../adapters/mcp/support.js'
import { harnessOf, tool } from './support.js'

async function warningsOf(stream: AsyncIterable<StreamEvent>): Promise<string[]> {
  const messages: string[] = []
  for await (const event of stream) if (event.kind === 'warning') messages.push(event.message)
  return messages
}

describe('the description of a harness', () => {
  test('lists every tool with its origin, its effects and its approval, and the budgets', async () => {
    const root = await folderWith({ 'skills/a/SKILL.md': skillText('a') })
    const server = oddServer(`{ 'tools/list': () => ({ tools: [tool('who')] }) }`, {
      env: { API_KEY: 'sk-secret' },
      requiresApproval: true,
    })
    await using harness = new Harness({
      model: new ScriptedModel(),
      root,
      builtinTools: ['read', 'write'],
      tools: [
        bash({ env: { TOKEN: 'hidden' } }),
        fetchUrl({ allowHosts: ['example.com'] }),
        tool('own', undefined, { requiresApproval: () => true, timeoutMs: 500 }),
      ],
      skills: { dirs: ['skills'], env: { SKILL_KEY: 'hidden' } },
      mcpServers: [server],
      limits: { modelRequests: 7 },
      hooks: [{ event: 'before_tool_call', handler: () => undefined }],
    })

    const description = await harness.describe()
    const anything = { reads: ['/'], writes: ['/'], hosts: ['*'], programs: ['*'] }

    expect({ ...description, tools: [] }).toMatchObject({
      model: 'scripted:scripted-1',
      root,
      servers: [{ id: 'odd', required: false, tools: 1 }],
      hooks: ['before_tool_call'],
      budgets: { modelRequests: 7, toolCalls: null, toolRetries: 3, outputRetries: 1 },
      warnings: [],
    })
    expect(description.tools.map(({ name, from, approval, reach }) => ({ name, from, approval, reach }))).toEqual([
      { name: 'read', from: 'package', approval: 'never', reach: { reads: ['.'] } },
      { name: 'write', from: 'package', approval: 'never', reach: { writes: ['.'] } },
      { name: 'bash', from: 'own', approval: 'never', reach: { ...anything, secrets: ['TOKEN'] } },
      { name: 'fetch_url', from: 'own', approval: 'never', reach: { hosts: ['example.com'] } },
      { name: 'own', from: 'own', approval: 'by_arguments', reach: null },
      { name: 'skill_read', from: 'package', approval: 'never', reach: { reads: [`${root}/skills/a`] } },
      { name: 'skill_run', from: 'package', approval: 'never', reach: { ...anything, secrets: ['SKILL_KEY'] } },
      {
        name: 'who',
        from: 'server',
        approval: 'always',
        reach: { ...anything, programs: [process.execPath], secrets: ['API_KEY'] },
      },
    ])
    expect(JSON.stringify(description) + String(description)).not.toMatch(/sk-secret|hidden/)
  })

  test('has the instructions, the settings and the schema of the answer, as they were set', async () => {
    const outputType = z.object({ city: z.string() })
    const settings = { maxOutputTokens: 500 }
    await using harness = harnessOf({ model: 'openai:gpt-5.5', instructions: 'Be brief.', settings, outputType })
    await using plain = harnessOf({ model: 'openai:gpt-5.5' })

    const description = await harness.describe()

    expect(description).toMatchObject({ instructions: 'Be brief.', settings })
    expect(description.output).toMatchObject({ type: 'object', properties: { city: { type: 'string' } } })
    expect(String(description)).toMatch(/^answer {4}\{.*"city"/m)
    expect(await plain.describe()).toMatchObject({ instructions: '', settings: {}, output: null })
  })

  test('a root that does not exist is a warning of the description and of the first run, and an error of connect()', async () => {
    const root = join(temporaryFolder(), 'notse')
    using model = new ScriptedModel().says('Nothing.').says('Nothing.')
    await using harness = new Harness({ model, root })
    const missing = expect.stringContaining(`${root} does not exist`) as string

    expect((await harness.describe()).warnings).toEqual([missing])
    await expect(harness.connect()).rejects.toMatchObject({ code: 'invalid_options', message: missing })
    expect(await warningsOf(harness.stream('What is due?'))).toEqual([missing])
    expect(await warningsOf(harness.stream('What is due?'))).toEqual([])
  })

  test('MC-42 passwords in addresses are in no description and no warning', async () => {
    const failing = async (): Promise<Response> => {
      throw new Error('Cannot reach https://ann:s3cret@proxy.test/ or redis://:s3cret@store.test.')
    }
    await using harness = harnessOf({
      model: 'local:qwen@http://ann:s3cret@127.0.0.1:9/v1',
      mcpServers: [mcpHttp({ url: 'https://ann:s3cret@mcp.test/a', fetch: failing })],
    })

    const description = await harness.describe()

    expect(description.model).toBe('local:qwen@http://***@127.0.0.1:9/v1')
    expect(description.warnings[0]).toContain('Cannot reach https://***@proxy.test/ or redis://***@store.test.')
    expect(JSON.stringify(description) + String(description)).not.toContain('s3cret')
  })

  test('is printed for people, in lines that no server can forge', async () => {
    const server = oddServer(`{ 'tools/list': () => ({ tools: [tool('a')] }) }`, { id: 'odd\ntool      forged: own' })
    await using harness = harnessOf({
      model: 'anthropic:claude-sonnet-5',
      root: '/work/space',
      tools: [...fileTools({ root: '/data', readPaths: ['in'], writePaths: ['out'] }).slice(0, 2), tool('own')],
      mcpServers: [server],
    })

    expect(String(await harness.describe()).split('\n')).toEqual([
      'model     anthropic:claude-sonnet-5',
      'root      /work/space',
      expect.stringMatching(/^budgets {3}modelRequests 64, toolCalls unlimited, .*toolRetries 3, outputRetries 1$/),
      'hooks     none',
      'server    odd tool forged: own: 1 tools',
      'tool      read: own, without approval, readOnly, idempotent',
      '          reads /data/in',
      'tool      write: own, without approval, destructive',
      '          writes /data/out',
      'tool      own: own, without approval',
      '          reach: not declared',
      'tool      a: server odd tool forged: own, without approval',
      '          reads /',
      '          writes /',
      '          hosts *',
      `          programs ${process.execPath}`,
    ])
  })

  test('lists the parts that could not be loaded, and the hosts of servers', async () => {
    const broken = mcpStdio({ id: 'broken', command: process.execPath, args: ['-e', 'process.exit(3)'] })
    await using harness = harnessOf({ model: new ScriptedModel(), mcpServers: [broken] })

    expect((await harness.describe()).warnings).toEqual([expect.stringMatching(/^`broken` is left out: /)])
    expect(() => mcpHttp({ url: 'https://mcp.example.com/mcp', headers: { authorization: 'Bearer x' } })).not.toThrow()
  })
})

describe('a child run', () => {
  const held = tool('send', () => 'sent', { requiresApproval: true })

  test.each([
    ['another tool of the name without it', tool('send'), false],
    ['one that decides for itself', tool('send', undefined, { requiresApproval: () => false }), false],
    ['one that always asks', tool('send', undefined, { requiresApproval: true }), true],
    ["its parent's", held, true],
    ['a tool that its parent has not', tool('other'), true],
  ])('cannot remove an approval that its parent needs: %s', async (_name, given, isAllowed) => {
    const model = ScriptedModel.each(({ transcript }) =>
      JSON.stringify(transcript).includes('Below.')
        ? new ScriptedModel().says('Child.')
        : new ScriptedModel().calls('start').says('Done.'),
    )
    const start = tool(
      'start',
      async (_args, { spawn }) => (await spawn({ prompt: 'Below.', tools: [given] }).result).text,
    )
    await using harness = harnessOf({ model, tools: [held, start] })

    const result = await harness.run('Go.')
    const told = JSON.stringify(result.transcript.filter(({ role }) => role === 'tool'))

    expect(told).toContain(isAllowed ? 'Child.' : 'A child run cannot call `send` with less approval than its parent')
  })
})
