import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { defineTool, fileLog, Harness, memoryLog } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { shell } from 'thinharness/tools'
import type { BashOptions } from 'thinharness/tools'
import { folderWith } from '../support.js'

/** Writes its number again and again. */
const BEAT = 'while :; do date +%N > beat; sleep 0.05; done'

async function harnessWith(
  model: ScriptedModel,
  options: BashOptions = {},
): Promise<{ harness: Harness; root: string }> {
  const root = await folderWith()
  return { root, harness: new Harness({ model, root, builtinTools: [], use: [shell(options)] }) }
}

function contentOf(output: string | undefined): string {
  const { content } = JSON.parse(output ?? '{}') as { readonly content: string }
  return content
}

async function contentsOf(harness: Harness): Promise<string[]> {
  const { toolCallRecords } = await harness.run('Go.')
  return toolCallRecords.map(({ output }) => contentOf(output))
}

async function expectStopped(root: string): Promise<void> {
  await vi.waitFor(async () => {
    const beat = (): Promise<string> => readFile(join(root, 'beat'), 'utf8')
    const before = await beat()
    await new Promise((resolve) => setTimeout(resolve, 250))
    expect(await beat()).toBe(before)
  }, 20_000)
}

describe('commands in the background', () => {
  test('BA-37 start at once, give their new output once, and report their end', async () => {
    const model = new ScriptedModel()
      .calls('bash', { command: 'echo one; read -t 0.4 < <(sleep 9); echo two; exit 3', background: true })
      .calls('bash_output', { id: 'bg_1', wait_ms: 20_000 })
      .calls('bash_output', { id: 'bg_1', wait_ms: 20_000 })
      .calls('bash_output', { id: 'bg_1', wait_ms: 20_000 })
      .calls('bash_output', { id: 'bg_1' })
      .says('Done.')
    const { harness } = await harnessWith(model)
    const contents = await contentsOf(harness)
    expect(contents[0]).toBe(
      'Started in the background as `bg_1`. Read its output with `bash_output`, end it with `bash_kill`.',
    )
    expect(contents[1]).toBe('bg_1 is running.\none\n')
    const rest = contents.slice(2).join('')
    expect(rest.match(/two\n/g)).toHaveLength(1)
    expect(rest).toContain('bg_1 has ended with exit code 3.')
    expect(contents.at(-1)).toBe('There is no command bg_1 in the background. Known: none.')
  })

  test('BA-37 are ended by `bash_kill`, with everything that they started', async () => {
    const model = new ScriptedModel()
      .calls('bash', { command: `setsid sh -c '${BEAT}' & sleep 60`, background: true })
      .calls('bash', { command: 'while [ ! -s beat ]; do sleep 0.02; done' })
      .calls('bash_kill', { id: 'bg_1' })
      .says('Done.')
    const { harness, root } = await harnessWith(model)
    expect((await contentsOf(harness))[2]).toBe('bg_1 was ended.\n(no new output)')
    await expectStopped(root)
  })

  test.each(['off', 'auto'] as const)('BA-38 end with the run: sandbox `%s`', async (sandbox) => {
    const model = new ScriptedModel()
      .calls('bash', { command: BEAT, background: true })
      .calls('bash', { command: 'while [ ! -s beat ]; do sleep 0.02; done' })
      .says('Done.')
    const { harness, root } = await harnessWith(model, { sandbox })
    await harness.run('Go.')
    await expectStopped(root)
  })

  test('BA-38 end with a run that is cancelled, and with the harness', async () => {
    const model = new ScriptedModel()
      .calls('bash', { command: BEAT, background: true })
      .calls('bash', { command: 'sleep 60' })
    const { harness, root } = await harnessWith(model)
    const run = harness.run('Go.').catch((error: unknown) => error)
    await vi.waitFor(() => stat(join(root, 'beat')), { timeout: 20_000 })
    await harness.close()
    await run
    await expectStopped(root)
  })

  test('BA-39 continue during a pause, and the model is told about them', async () => {
    const ask = defineTool({
      name: 'ask',
      description: 'Asks.',
      parameters: { type: 'object', properties: {}, additionalProperties: false },
      requiresApproval: true,
      handler: () => 'asked',
    })
    const model = new ScriptedModel()
      .calls('bash', { command: BEAT, background: true })
      .calls('ask', {}, { callId: 'held' })
      .calls('bash_output', { id: 'bg_1' })
      .says('Done.')
    const root = await folderWith()
    const harness = new Harness({ model, root, builtinTools: [], tools: [ask], use: [shell()], log: memoryLog() })
    const paused = await harness.run('Go.', { runId: 'run_a' })
    expect(paused.status).toBe('paused')
    await vi.waitFor(() => stat(join(root, 'beat')), { timeout: 20_000 })
    const { toolCallRecords } = await harness.resume('run_a', [{ callId: 'held', approved: true }])
    expect(contentOf(toolCallRecords.at(-1)?.output)).toBe('bg_1 is running.\n(no new output)')
    expect(JSON.stringify(model.requests)).toContain('Commands in the background:\\nbg_1 is running.')
    await expectStopped(root)
  })

  test('BA-39 are reported as ended after a crash', async () => {
    const root = await folderWith()
    const log = fileLog(join(root, 'runs'))
    const wait = defineTool({
      name: 'wait',
      description: 'Waits.',
      parameters: { type: 'object', properties: {}, additionalProperties: false },
      requiresApproval: true,
      handler: () => 'waited',
    })
    const options = { root, builtinTools: [], tools: [wait], log } as const
    const first = new ScriptedModel()
      .calls('bash', { command: 'sleep 60', background: true })
      .calls('wait', {}, { callId: 'held' })
    const before = new Harness({ ...options, model: first, use: [shell()] })
    await before.run('Go.', { runId: 'run_a' })
    const second = new ScriptedModel().calls('bash_output', { id: 'bg_1' }).says('Done.')
    // Another process has an extension of its own, without the commands of the first.
    const after = new Harness({ ...options, model: second, use: [shell()] })
    const { toolCallRecords } = await after.resume('run_a', [{ callId: 'held', approved: true }])
    expect(JSON.parse(toolCallRecords.at(-1)?.output ?? '{}')).toMatchObject({
      ok: false,
      content: 'bg_1 ended when the process that ran it ended. Its output is lost.',
    })
    await before.close()
  })

  test('BA-40 are bounded: eight at a time, and long output keeps its beginning and its end', async () => {
    const model = new ScriptedModel()
    for (let count = 0; count < 9; count++) model.calls('bash', { command: 'sleep 60', background: true })
    model
      .calls('bash_kill', { id: 'bg_1' })
      .calls('bash', { command: 'seq 1 100000', background: true })
      .calls('bash', { command: 'sleep 0.7' })
      .calls('bash_output', { id: 'bg_9', wait_ms: 10_000 })
      .says('Done.')
    const { harness } = await harnessWith(model, { maxOutputChars: 200, sandbox: 'off' })
    const contents = await contentsOf(harness)
    expect(contents[8]).toBe('8 commands are running in the background: end one first.')
    expect(contents.at(-1)).toMatch(/^bg_9 .*\n\(cut; full text in \S+bash_output-\S+: use `read`\)\n1\n2\n/)
    expect(contents.at(-1)?.length).toBeLessThan(600)
  })
})
