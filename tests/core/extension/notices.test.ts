import { expect, test } from 'vitest'
import { defineExtension } from 'thinharness'
import type { Notice, TranscriptEntry } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { eventsOf, harnessOf, ofKind, tool } from '../../harness/support.js'

function textIn(entries: readonly TranscriptEntry[]): string[] {
  return entries
    .flatMap((entry) => (entry.role === 'user' ? entry.content : []))
    .flatMap((part) => (part.type === 'text' ? part.text : []))
}

function scripted(turns: number): ScriptedModel {
  const model = new ScriptedModel()
  for (let index = 0; index < turns; index++) model.calls('step', {})
  return model.says('Done.')
}

test('XT-13 notices come last in a request, and only when they changed', async () => {
  let done = 0
  const model = scripted(3)
  const use = [
    defineExtension({
      name: 'tasks',
      notices: () => [
        { name: 'open', text: `${done < 2 ? 2 : 1} tasks are open.` },
        { name: 'place', text: 'You are in Berlin.' },
      ],
    }),
  ]
  const harness = harnessOf({ model, tools: [tool('step', () => String((done += 1)))], use })
  await harness.run('Go.', { limits: { modelRequests: 4 } })
  const place = '<host_notice name="place">\nYou are in Berlin.\n</host_notice>'
  expect(model.requests.map(({ entries }) => textIn(entries))).toEqual([
    ['Go.', `<host_notice name="open">\n2 tasks are open.\n</host_notice>\n\n${place}`],
    [],
    ['<host_notice name="open">\n1 tasks are open.\n</host_notice>'],
    [expect.stringContaining('final model request')],
  ])
})

test('XT-14 a source that fails is reported and counted, and the request goes without its notices', async () => {
  const odd: unknown[] = ['no list', [{ name: 'no good', text: 'x' }]]
  const use = [
    defineExtension({
      name: 'broken',
      notices: () => {
        throw new Error('Oops.')
      },
    }),
    defineExtension({ name: 'odd', notices: () => (odd.shift() ?? []) as Notice[] }),
    defineExtension({ name: 'sound', notices: async () => [{ name: 'n', text: 'Sound.' }] }),
  ]
  const model = scripted(1)
  const stream = harnessOf({ model, tools: [tool('step')], use }).stream('Go.')
  const events = await eventsOf(stream)
  expect(
    ofKind(events, 'hook_failed').map(({ hookEvent, extension, message }) => [hookEvent, extension, message]),
  ).toEqual([
    ['notices', 'broken', 'Oops.'],
    ['notices', 'odd', 'Expected a list of notices, `{ name, text }`; a name has letters, digits, `_` and `-`.'],
    ['notices', 'broken', 'Oops.'],
    ['notices', 'odd', 'Expected a list of notices, `{ name, text }`; a name has letters, digits, `_` and `-`.'],
  ])
  expect((await stream.result).usage.hookFailures).toBe(4)
  expect(textIn(model.requests[0]?.entries ?? [])).toContain('<host_notice name="n">\nSound.\n</host_notice>')
})
