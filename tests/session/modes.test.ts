import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { Harness, memoryLog } from 'thinharness'
import type { LogStore, Model, ModelRef } from 'thinharness'
import type { Chat, ThreadEvent } from 'thinharness/session'
import { ScriptedModel } from 'thinharness/testing'
import { harnessOf, tool } from '../harness/support.js'
import { allStores, codeOf, sessionsOf } from './support.js'

async function textOf(
  chat: Pick<Chat, 'send'>,
  prompt: string,
  options?: { readonly model: ModelRef },
): Promise<string> {
  return (await (await chat.send(prompt, options)).done).text
}

/** A model for each reference, which replies with its name. */
function byName(reference: unknown): Model {
  return new ScriptedModel().always(`By ${String(reference)}.`)
}

function modesOf(): { readonly plan: Harness; readonly build: Harness } {
  return { plan: harnessOf({ model: byName('plan') }), build: harnessOf({ model: byName('build') }) }
}

async function storedEvents(log: LogStore, threadId: string): Promise<readonly ThreadEvent[]> {
  const events: ThreadEvent[] = []
  for await (const event of log.read<ThreadEvent>({ kind: 'thread', id: threadId })) events.push(event)
  return events
}

describe.each(await allStores())('modes and models in the %s log', (_name, open: () => LogStore) => {
  test('SB-45 SB-46 a change of mode is one event; an unknown mode is refused and changes nothing', async () => {
    const log = open()
    const chat = await sessionsOf({ log, modes: modesOf(), defaultMode: 'plan' }).open('t1')
    expect(await codeOf(chat.setMode('other' as never))).toBe('unknown_mode')
    expect(await codeOf(chat.setModel('openai:any', { mode: 'other' as never }))).toBe('unknown_mode')
    await chat.setMode('build')
    await chat.setMode('build')
    const [, change, ...rest] = await storedEvents(log, 't1')
    expect([change?.kind, rest]).toEqual(['setting_changed', []])
    expect(chat.snapshot.thread.mode).toBe('build')
  })

  test('SB-18 SB-47 SB-53 each mode remembers its model, also after a restart; that of one message is not remembered', async () => {
    const log = open()
    const options = { log, modes: modesOf(), resolveModel: byName, settings: z.strictObject({ theme: z.string() }) }
    const first = sessionsOf({ ...options, defaultMode: 'plan' })
    const chat = await first.open('t1')
    await chat.setModel('openai:a')
    expect(await textOf(chat, 'Plan.')).toBe('By openai:a.')
    await chat.setMode('build')
    expect(await textOf(chat, 'Build.')).toBe('By build.')
    await chat.setModel('openai:b')
    expect(await textOf(chat, 'Build.', { model: 'openai:once' })).toBe('By openai:once.')
    await chat.setMode('plan')
    expect(await textOf(chat, 'Plan.')).toBe('By openai:a.')
    await chat.set({ theme: 'dark' })
    await first.close()
    const again = await sessionsOf({ ...options, defaultMode: 'plan' }).open('t1')
    expect(await textOf(again, 'Plan.')).toBe('By openai:a.')
    await again.setMode('build')
    expect(await textOf(again, 'Build.')).toBe('By openai:b.')
    await again.setModel(null)
    expect(await textOf(again, 'Build.')).toBe('By build.')
  })

  test('SB-48 three quick changes of mode come in their order, and the last one counts', async () => {
    const log = open()
    const chat = await sessionsOf({ log, modes: modesOf(), defaultMode: 'plan' }).open('t1')
    await Promise.all([chat.setMode('build'), chat.setMode('plan'), chat.setMode('build')])
    const changes = (await storedEvents(log, 't1')).flatMap((event) =>
      event.kind === 'setting_changed' ? [event.mode] : [],
    )
    expect([changes.at(-1), chat.snapshot.thread.mode]).toEqual(['build', 'build'])
    expect(await textOf(chat, 'Go.')).toBe('By build.')
  })

  test('SB-49 a mode that is chosen before the first message is stored, and is that of the message', async () => {
    const log = open()
    const first = sessionsOf({ log, modes: modesOf(), defaultMode: 'plan' })
    await (await first.open('t1')).setMode('build')
    await first.close()
    const chat = await sessionsOf({ log, modes: modesOf(), defaultMode: 'plan' }).open('t1')
    expect(await textOf(chat, 'Go.')).toBe('By build.')
  })

  test('SB-50 the default mode takes over the messages of a mode that does not exist any more', async () => {
    const log = open()
    const first = sessionsOf({ log, modes: modesOf(), defaultMode: 'plan' })
    const before = await first.open('t1')
    await before.setMode('build')
    await first.close()
    const { plan } = modesOf()
    const chat = await sessionsOf({ log, modes: { plan } }).open('t1')
    expect(await textOf(chat, 'Go.')).toBe('By plan.')
  })

  test('SB-58 a message that no model can answer is kept: its run fails, and the message is at the head of the queue', async () => {
    const chat = await sessionsOf({ log: open(), harness: new Harness({ builtinTools: [] }) }).open('t1')
    const sent = await chat.send('Anyone?', { messageId: 'm1' })
    expect(await sent.done).toMatchObject({ status: 'failed', error: { code: 'missing_model' } })
    await chat.whenIdle()
    expect(chat.snapshot.runs).toEqual([])
    expect([chat.queue.held, chat.queue.list().map(({ messageId }) => messageId)]).toEqual([true, ['m1']])
  })
})

test('SB-51 SB-52 a mode offers the tools and instructions of its harness, which no change of mode changes', async () => {
  const models = { plan: new ScriptedModel().always('Planned.'), build: new ScriptedModel().always('Built.') }
  const modes = {
    plan: harnessOf({ model: models.plan, instructions: 'Plan.', tools: [tool('look')] }),
    build: harnessOf({ model: models.build, instructions: 'Build.', tools: [tool('look'), tool('change')] }),
  }
  const before = JSON.stringify([await modes.plan.describe(), await modes.build.describe()])
  const chat = await sessionsOf({ log: memoryLog(), modes, defaultMode: 'plan' }).open()
  for (const mode of ['plan', 'build', 'plan'] as const) {
    await chat.setMode(mode)
    await textOf(chat, 'Go.')
  }
  const offered = ({ requests }: ScriptedModel): readonly string[] =>
    requests.map(({ constants }) => constants.tools.map(({ name }) => name).join(' '))
  expect([offered(models.plan), offered(models.build)]).toEqual([['look', 'look'], ['look change']])
  expect(models.build.requests[0]?.constants.instructions).toContain('Build.')
  expect(models.build.requests[0]?.constants.instructions).not.toContain('Plan.')
  expect(JSON.stringify([await modes.plan.describe(), await modes.build.describe()])).toBe(before)
})

test('a model that is not there is refused when it is chosen, and when a message asks for it', async () => {
  const chat = await sessionsOf({ harness: harnessOf({ model: byName('own') }) }).open()
  expect(await codeOf(chat.setModel('opnai:x'))).toBe('unknown_model')
  expect(await codeOf(chat.send('1', { model: 'opnai:x' }))).toBe('unknown_model')
  expect(await codeOf(chat.steer('1', { model: 'opnai:x', interrupt: true }))).toBe('unknown_model')
  expect([chat.snapshot.thread.models, chat.queue.list(), chat.snapshot.runs]).toEqual([{}, [], []])
  expect(await textOf(chat, '1')).toBe('By own.')
  const resolving = sessionsOf({
    harness: harnessOf({ model: byName('own') }),
    resolveModel(reference) {
      if (reference !== 'any:a') throw new TypeError('There is none.')
      return byName(reference)
    },
  })
  const other = await resolving.open()
  expect(await codeOf(other.setModel('any:b'))).toBe('unknown_model')
  await other.setModel('any:a')
  expect(await textOf(other, '1')).toBe('By any:a.')
})
