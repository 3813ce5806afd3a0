import { expect, test } from 'vitest'
import { z } from 'zod'
import { memoryLog } from 'thinharness'
import type { LogStore } from 'thinharness'
import type { SessionsOptions } from 'thinharness/session'
import { ScriptedModel } from 'thinharness/testing'
import { harnessOf } from '../harness/support.js'
import { codeOf, sessionsOf, warnings } from './support.js'

type Settings = SessionsOptions['settings']

const harness = harnessOf({ model: new ScriptedModel().always('Yes.') })

/** A conversation with settings that an earlier version of the program has stored. */
async function stored(log: LogStore, settings: Settings, values: object): Promise<void> {
  const sessions = sessionsOf({ log, harness, settings })
  const chat = await sessions.open('t1')
  await chat.set(values)
  await sessions.close()
}

test('settings are stored as their schema parses them', async () => {
  const settings = z.object({ n: z.coerce.number(), name: z.string().trim().default('me') })
  const chat = await sessionsOf({ harness, settings }).open()
  await chat.set({ n: '3', name: ' you ', other: true })
  expect(chat.snapshot.thread.settings).toEqual({ n: 3, name: 'you' })
  await chat.set({ n: 4 })
  expect(chat.snapshot.thread.settings).toEqual({ n: 4, name: 'you' })
})

test('settings that no longer fit after a deploy fall to their defaults, new ones get theirs, and that is said once', async () => {
  const log = memoryLog()
  await stored(log, z.object({ theme: z.string(), n: z.number(), kept: z.string() }), {
    theme: 'pink',
    n: 12,
    kept: 'yes',
  })
  const seen = warnings()
  const strict = z.strictObject({
    theme: z.enum(['dark', 'light']).default('dark'),
    n: z.number().max(10).optional(),
    kept: z.string(),
    size: z.number().default(2),
  })
  for (let time = 0; time < 2; time += 1) {
    const sessions = sessionsOf({ log, harness, settings: strict })
    const chat = await sessions.open('t1')
    expect(chat.snapshot.thread.settings).toEqual({ theme: 'dark', kept: 'yes', size: 2 })
    expect(chat.owner).toBe(null)
    await sessions.close()
  }
  await new Promise((resolve) => setImmediate(resolve))
  expect(seen).toEqual([expect.stringMatching(/`theme`.*`n`/)])
  const chat = await sessionsOf({ log, harness, settings: strict }).open('t1')
  await chat.set({ theme: 'light' })
  expect(chat.snapshot.thread.settings).toEqual({ theme: 'light', kept: 'yes', size: 2 })
})

test('a setting that a deploy has removed from a strict schema takes no other with it', async () => {
  const log = memoryLog()
  await stored(log, z.strictObject({ theme: z.string(), old: z.string() }), { theme: 'pink', old: 'x' })
  const chat = await sessionsOf({ log, harness, settings: z.strictObject({ theme: z.string() }) }).open('t1')
  expect(chat.snapshot.thread.settings).toEqual({ theme: 'pink' })
})

test('the same holds for a JSON Schema', async () => {
  const log = memoryLog()
  await stored(log, { type: 'object', properties: { n: { type: 'number' } } }, { n: 12, kept: 'yes' })
  const properties = { n: { type: 'number', maximum: 10, default: 1 }, size: { type: 'number', default: 2 } }
  const chat = await sessionsOf({ log, harness, settings: { type: 'object', properties } }).open('t1')
  expect(chat.snapshot.thread.settings).toEqual({ n: 1, kept: 'yes', size: 2 })
  expect(await codeOf(chat.set({ n: 11 }))).toBe('invalid_settings')
})
