import fc from 'fast-check'
import { expect, test } from 'vitest'
import { MessageList } from '#providers/wire/wire-session.js'
import type { JsonObject } from '#util/json.js'

function textOf(list: MessageList, tail: JsonObject = {}): string {
  return Buffer.concat(list.finish(tail) as readonly Uint8Array[]).toString()
}

test.each<[string, JsonObject, JsonObject[], JsonObject, string]>([
  ['nothing at all', {}, [], {}, '{"messages":[]}'],
  ['a head', { model: 'm' }, [], {}, '{"model":"m","messages":[]}'],
  ['a tail', {}, [], { stream: true }, '{"messages":[],"stream":true}'],
  [
    'all of it',
    { a: 1, b: undefined },
    [{ r: 'ü' }, { r: 2 }],
    { s: 0 },
    '{"a":1,"messages":[{"r":"ü"},{"r":2}],"s":0}',
  ],
])('a body is head, messages, tail: %s', (_name, head, messages, tail, text) => {
  const list = new MessageList('bytes', 'messages')
  list.open(head, messages)
  expect(textOf(list, tail)).toBe(text)
  const asJson = new MessageList('json', 'messages')
  asJson.open(head, messages)
  expect(asJson.finish(tail)).toEqual(JSON.parse(text))
  expect(Object.keys(JSON.parse(JSON.stringify(asJson.finish(tail))) as object)).toEqual(
    Object.keys(JSON.parse(text) as object),
  )
})

const messages = fc.array(fc.dictionary(fc.string(), fc.string({ unit: 'binary' }), { maxKeys: 3 }), { maxLength: 5 })

test('existing messages keep their bytes while others join', () => {
  fc.assert(
    fc.property(fc.array(messages, { maxLength: 6 }), (joining) => {
      const list = new MessageList('bytes', 'input')
      list.open({ model: 'm' }, [])
      let before = textOf(list)
      for (const [index, added] of joining.entries()) {
        list.append(added)
        const after = textOf(list, { n: index })
        const prefix = before.slice(0, before.lastIndexOf(']'))
        expect(after.startsWith(prefix)).toBe(true)
        expect((JSON.parse(after) as { input: unknown }).input).toEqual(joining.slice(0, index + 1).flat())
        before = after
      }
    }),
  )
})

test('bytes that were returned are not overwritten by growth', () => {
  const list = new MessageList('bytes', 'messages')
  list.open({}, [{ text: 'first' }])
  const sent = list.finish({}) as readonly Uint8Array[]
  list.append([{ text: 'x'.repeat(10_000) }])
  expect(Buffer.concat(sent).toString()).toBe('{"messages":[{"text":"first"}]}')
})

test('bytes that were returned are not overwritten by a new beginning', () => {
  const list = new MessageList('bytes', 'messages')
  list.open({}, [{ text: 'first' }])
  const sent = list.finish({}) as readonly Uint8Array[]
  list.open({}, [{ text: 'other' }])
  expect(Buffer.concat(sent).toString()).toBe('{"messages":[{"text":"first"}]}')
})

test('as an object, the returned list does not grow', () => {
  const list = new MessageList('json', 'messages')
  list.open({}, [{ n: 1 }])
  const sent = list.finish({})
  list.append([{ n: 2 }])
  expect(sent).toEqual({ messages: [{ n: 1 }] })
})

test('a message is serialized once, however many turns follow', () => {
  let serialized = 0
  const counting = {
    toJSON() {
      serialized += 1
      return { n: 1 }
    },
  } as unknown as JsonObject
  const list = new MessageList('bytes', 'messages')
  list.open({}, [counting])
  for (let turn = 0; turn < 50; turn++) {
    list.append([{ turn }])
    textOf(list)
  }
  expect(serialized).toBe(1)
})
