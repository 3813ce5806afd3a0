import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { defineTool, memoryLog } from 'thinharness'
import type { PendingItem } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { eventsIn, logWith, stored } from '../../../run/resume/pause-support.js'
import { eventsOf, harnessOf, ofKind, tool } from '../../../harness/support.js'
import { temporaryFolder } from '../../../support/folder.js'

const WRITE = { path: 'deploy.sh', content: 'rm -rf build' }

/** A tool that writes files, and one that runs them once a person has agreed. */
function deployment() {
  const done: string[] = []
  const write = tool('write', ({ path }) => void done.push(`write ${JSON.stringify(path)}`), { sequential: true })
  const sh = tool('sh', ({ file }) => void done.push(`sh ${JSON.stringify(file)}`), {
    requiresApproval: true,
    sequential: true,
  })
  return { tools: [write, sh, tool('look')], done }
}

function scripted(): ScriptedModel {
  return new ScriptedModel()
    .callsAll([
      { name: 'write', arguments: WRITE },
      { name: 'sh', arguments: { file: 'deploy.sh' } },
      { name: 'look', arguments: {} },
    ])
    .says('Deployed.')
}

const OTHERS = [
  { callId: 'call_1', toolName: 'write', arguments: JSON.stringify(WRITE), when: 'before' },
  { callId: 'call_3', toolName: 'look', arguments: '{}', when: 'after' },
]

describe('a pending item shows the other calls of its batch', () => {
  test('AP-45 a call that an approved one depends on is shown with it, and nothing of the batch has run', async () => {
    const { tools, done } = deployment()
    using model = scripted()
    const harness = harnessOf({ model, tools })
    const stream = harness.stream('Deploy.')
    const [asked] = ofKind(await eventsOf(stream), 'approval_requested')
    expect(asked?.items).toMatchObject([{ toolName: 'sh', otherCalls: OTHERS }])
    const paused = await stream.result
    expect([paused.pending, done]).toMatchObject([[{ callId: 'call_2', otherCalls: OTHERS }], []])
    await harness.resume(stored(paused), [{ callId: 'call_2', approved: true }])
    expect(done).toEqual(['write "deploy.sh"', 'sh "deploy.sh"'])
  })

  test('after a crash, and for other readers of the log, the items are the same', async () => {
    const log = memoryLog()
    const { tools, done } = deployment()
    const model = scripted()
    await harnessOf({ model, tools, log }).run('Deploy.', { runId: 'run_1' })
    const restored = await logWith(await eventsIn(log, 'run_1'))
    using next = new ScriptedModel().says('Deployed.')
    const harness = harnessOf({ model: next, tools, log: restored })
    const recovered = await harness.recover('run_1')
    expect(recovered.pending).toMatchObject([{ callId: 'call_2', otherCalls: OTHERS }])
    expect((await restored.inspect({ kind: 'run', id: 'run_1' }))?.status).toBe('paused')
    await harness.resume('run_1', [{ callId: 'call_2', approved: true }])
    expect(done).toEqual(['write "deploy.sh"', 'sh "deploy.sh"'])
  })

  test('arguments are those of the hooks; calls with items of their own are named without them', async () => {
    const { tools } = deployment()
    using model = new ScriptedModel().callsAll([
      { name: 'write', arguments: WRITE },
      { name: 'sh', arguments: { file: 'a.sh' } },
      { name: 'sh', arguments: { file: 'b.sh' } },
    ])
    const result = await harnessOf({
      model,
      tools,
      hooks: [
        {
          event: 'before_tool_call',
          handler: ({ toolName }) => (toolName === 'write' ? { args: { path: 'other.sh', content: '' } } : {}),
        },
      ],
    }).run('Deploy.')
    const others = result.pending.map(({ otherCalls }) => otherCalls)
    const write = { callId: 'call_1', toolName: 'write', arguments: '{"path":"other.sh","content":""}', when: 'before' }
    expect(others).toEqual([
      [write, { callId: 'call_3', toolName: 'sh', when: 'after' }],
      [write, { callId: 'call_2', toolName: 'sh', when: 'before' }],
    ])
  })

  test('a question shows which calls have ended; the items of a child run show the calls of the child', async () => {
    const ask = tool('ask', (_, context) => context.ask('Which?', { type: 'string' }), { sequential: true })
    using model = new ScriptedModel().callsAll([
      { name: 'look', arguments: {} },
      { name: 'ask', arguments: {} },
      { name: 'look', arguments: {} },
    ])
    const asked = await harnessOf({ model, tools: [ask, tool('look')] }).run('Ask.')
    expect(asked.pending[0]?.otherCalls).toMatchObject([
      { callId: 'call_1', when: 'ended' },
      { callId: 'call_3', when: 'after' },
    ])
    const { tools } = deployment()
    const child = scripted()
    using parent = new ScriptedModel().calls('delegate')
    const delegate = defineTool({
      name: 'delegate',
      description: 'Delegates.',
      parameters: { type: 'object' },
      handler: (_, { spawn }) => spawn({ prompt: 'Deploy.', model: child, tools }).result,
    })
    const { pending } = await harnessOf({ model: parent, tools: [delegate] }).run('Go.')
    const [first] = pending as readonly PendingItem[]
    const prefix = first?.callId.replace(/call_2$/, '')
    expect(first?.otherCalls).toEqual(OTHERS.map((call) => ({ ...call, callId: `${prefix}${call.callId}` })))
  })

  test('a script that the model writes and runs in one reply is shown before it runs', async () => {
    const root = temporaryFolder()
    await mkdir(join(root, 'bin'))
    await writeFile(join(root, 'bin/old.sh'), 'true')
    using model = new ScriptedModel().callsAll([
      { name: 'write', arguments: { path: 'bin/deploy.sh', content: 'echo hi' } },
      { name: 'sh', arguments: {} },
    ])
    const sh = tool('sh', () => 'ran', { requiresApproval: true })
    const { pending } = await harnessOf({ model, root, builtinTools: ['write'], tools: [sh] }).run('Deploy.')
    expect(pending[0]?.otherCalls?.[0]?.arguments).toContain('echo hi')
  })
})
