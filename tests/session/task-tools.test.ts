import { describe, expect, test } from 'vitest'
import { tasks } from 'thinharness/session'
import type { ChatCall } from 'thinharness/session'
import { ScriptedModel } from 'thinharness/testing'
import { subagent } from 'thinharness/tools'
import { harnessOf } from '../harness/support.js'
import { sessionsOf } from './support.js'

type Call = readonly [name: string, args: object]

interface Listed {
  readonly tasks: readonly object[]
  readonly calls: readonly ChatCall[]
  readonly model: ScriptedModel
}

/** The list after calls of the task tools, one in each turn. */
async function listAfter(...calls: readonly Call[]): Promise<Listed> {
  const model = new ScriptedModel()
  for (const [name, args] of calls) model.calls(name, args as never)
  model.says('Done.')
  const chat = await sessionsOf({ harness: harnessOf({ model, use: [tasks()] }) }).open()
  await (
    await chat.send('Go.')
  ).done
  return { tasks: chat.snapshot.tasks, calls: chat.snapshot.runs[0]?.calls ?? [], model }
}

function task(content: string, status = 'pending', id?: string): object {
  return { content, status, activeForm: `${content} …`, ...(id !== undefined && { id }) }
}

function write(...list: readonly object[]): Call {
  return ['task_write', { tasks: list }]
}

describe('the task tools', () => {
  test('SB-124 a list with two tasks in progress is refused, and the old one stays', async () => {
    const { tasks: list, calls } = await listAfter(
      write(task('Test')),
      write(task('One', 'in_progress'), task('Two', 'in_progress')),
    )
    expect(list).toMatchObject([{ id: 'task_test', content: 'Test' }])
    expect(calls[1]).toMatchObject({ status: 'failed', output: expect.stringContaining('At most one task') as string })
  })

  test('SB-124 ids are kept, repeated ones are replaced, and missing ones are those of the same text, or made of the text', async () => {
    const { tasks: first } = await listAfter(
      write(task('Run the tests!', 'pending', 'a'), task('Other', 'pending', 'a'), task('Other'), task('Ünïcode')),
    )
    expect(first.map((each) => (each as { id: string }).id)).toEqual(['a', 'task_other', 'task_other_2', 'task_n_code'])
    const { tasks: second } = await listAfter(
      write(task('Build', 'pending', 'b1'), task('Same', 'pending', 's1'), task('Same', 'pending', 's2')),
      write(task('Build', 'completed'), task('Same'), task('x'.repeat(60))),
    )
    expect(second.map((each) => (each as { id: string }).id)).toEqual(['b1', 'task_same', `task_${'x'.repeat(48)}`])
  })

  test('SB-125 a task that begins puts the other one back; an unknown id names the known ones; a change needs a field', async () => {
    const { tasks: list, calls } = await listAfter(
      write(task('One', 'in_progress'), task('Two')),
      ['task_update', { id: 'task_two', status: 'in_progress' }],
      ['task_update', { id: 'task_three', status: 'completed' }],
      ['task_complete', { id: 'task_four' }],
      ['task_update', { id: 'task_two' }],
    )
    expect(list).toMatchObject([{ status: 'pending' }, { status: 'in_progress' }])
    expect(calls.map(({ status }) => status)).toEqual(['completed', 'completed', 'failed', 'failed', 'failed'])
    expect(calls[2]?.output).toContain('task_one (pending), task_two (in_progress)')
    expect(calls[4]?.output).toContain('at least one of')
  })

  test('SB-126 an empty list has no tasks, is not completed, and is no error', async () => {
    const { calls } = await listAfter(['task_check', {}])
    expect(calls[0]).toMatchObject({ status: 'completed' })
    const summary = { total: 0, hasTasks: false, allCompleted: false }
    expect(JSON.parse(calls[0]?.output ?? '')).toMatchObject({ metadata: { summary, incomplete_tasks: [] } })
  })

  test('SB-127 the model sees the list when it has changed, after the conversation; the instructions stay the same', async () => {
    const { model } = await listAfter(
      write(task('One', 'in_progress'), task('Two')),
      ['task_check', {}],
      ['task_complete', { id: 'task_one' }],
    )
    const shown = model.requests.map(({ heard }) => JSON.stringify(heard))
    expect(shown.map((text) => text.includes('[>] One'))).toEqual([false, true, expect.any(Boolean), false])
    expect(shown[3]).toContain('[x] One')
    expect(new Set(model.requests.map(({ constants }) => constants.instructions)).size).toBe(1)
  })

  test('SB-133 SB-134 a forked child is no thread; only its result is in the conversation, and its task tools leave the list of its caller alone', async () => {
    const model = new ScriptedModel()
      .calls('task_write', { tasks: [task('Mine')] } as never)
      .calls('subagent', { task: 'Your part.' })
      .calls('task_write', { tasks: [task('Of the child')] } as never)
      .says('Done with my part.')
      .says('Done.')
    const use = [tasks(), subagent({ defaultAgent: { history: 'fork' } })]
    const sessions = sessionsOf({ harness: harnessOf({ model, use }) })
    const chat = await sessions.open('t1')
    await (
      await chat.send('Go.')
    ).done
    expect(chat.snapshot.tasks).toMatchObject([{ content: 'Mine' }])
    const listed: string[] = []
    for await (const { threadId } of sessions.list()) listed.push(threadId)
    expect(listed).toEqual(['t1'])
    expect((await sessions.messages('t1')).map(({ role }) => role)).toEqual([
      // The notice of the task list comes before the second reply.
      ...['user', 'assistant', 'tool', 'user', 'assistant', 'tool', 'assistant'],
    ])
  })
})
