import { expect, test } from 'vitest'
import { memoryLog } from 'thinharness'
import { Sessions } from 'thinharness/session'
import { ScriptedModel } from 'thinharness/testing'
import { harnessOf, tool } from '../harness/support.js'
import { gate, sessionsOf } from './support.js'

test('sessions that replace their predecessor in one process have its threads at once, and run their own tools', async () => {
  const log = memoryLog()
  const { opened: asked, open } = gate()
  const first = new ScriptedModel().replies(() => {
    open()
    return new Promise(() => undefined)
  })
  const old = new Sessions({ log, harness: harnessOf({ model: first, tools: [tool('look', () => 'old')] }) })
  await (await old.open('t1')).send('Look.')
  await asked
  await old.close()
  const next = new ScriptedModel().calls('look').says('Done.')
  const sessions = sessionsOf({ log, harness: harnessOf({ model: next, tools: [tool('look', () => 'new')] }) })
  const chat = await sessions.open('t1')
  expect(await chat.recover()).toBe(true)
  await chat.whenIdle()
  expect(chat.snapshot.runs.at(-1)?.calls[0]?.output).toContain('new')
})
