import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { JsonValue } from 'thinharness'
import { followAnswer } from '#run/output/follow-answer.js'
import { PartialJson } from '#run/output/partial-json.js'
import { rounds } from '../../support/length.js'

function read(text: string): JsonValue | undefined {
  const json = new PartialJson()
  json.push(text)
  return json.isReadable ? json.value() : undefined
}

/** Whether `part` is what `whole` can have been before it was all there. */
function isBeginning(part: unknown, whole: unknown): boolean {
  if (typeof part === 'string' && typeof whole === 'string') return whole.startsWith(part)
  if (Array.isArray(part) && Array.isArray(whole)) {
    return part.length <= whole.length && part.every((item, index) => isBeginning(item, whole[index]))
  }
  if (typeof part !== 'object' || part === null || typeof whole !== 'object' || whole === null) return part === whole
  return Object.entries(part).every(
    ([name, member]) => Object.hasOwn(whole, name) && isBeginning(member, (whole as Record<string, unknown>)[name]),
  )
}

describe('JSON that is still arriving', () => {
  test.each<[string, JsonValue | undefined]>([
    ['', undefined],
    ['{', {}],
    ['{"a', {}],
    ['{"a":', {}],
    ['{"a":"x', { a: 'x' }],
    ['{"a":"x\\', { a: 'x' }],
    ['{"a":"x\\u00e', { a: 'x' }],
    ['{"a":"x\\u00e4', { a: 'xä' }],
    ['{"a":12', {}],
    ['{"a":12,', { a: 12 }],
    ['{"a":tru', {}],
    ['{"a":true}', { a: true }],
    ['[1, [2, "', [1, [2, '']]],
    ['[1, {"b": null}', [1, { b: null }]],
    ['"half \ud83d', 'half '],
    ['"half \ud83d\ude00', 'half 😀'],
    ['"\\ud83d\\ude0', ''],
    ['"\\ud83d\\ude00"', '😀'],
    ['{"a":1]', undefined],
    ['{"a" 1', undefined],
    ['[1,]', undefined],
    ['{"a":1} more', undefined],
    ['[nul]', undefined],
    ['no JSON', undefined],
  ])('%j is read as %j', (text, value) => {
    expect(read(text)).toEqual(value)
  })

  test('a member called `__proto__` is one like any other', () => {
    const value = read('{"__proto__":{"admin":true},"a":{"__proto__":1') as Record<string, unknown>
    expect(Object.keys(value)).toEqual(['__proto__', 'a'])
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
    expect(({} as { admin?: unknown }).admin).toBeUndefined()
  })

  test('any JSON in any pieces only grows, up to the value of JSON.parse', () => {
    const pieces = fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 1 })
    fc.assert(
      fc.property(fc.jsonValue(), pieces, fc.boolean(), (value, sizes, isIndented) => {
        const text = `[${JSON.stringify(value, null, isIndented ? 2 : 0)}]`
        const whole = JSON.parse(text) as JsonValue
        const json = new PartialJson()
        let before: JsonValue | undefined
        for (let at = 0, turn = 0; at < text.length; turn++) {
          const size = sizes[turn % sizes.length] ?? 1
          json.push(text.slice(at, at + size))
          at += size
          const now = json.value()
          if (!json.isReadable || !isBeginning(now, whole) || (before !== undefined && !isBeginning(before, now))) {
            return false
          }
          before = now
        }
        expect(before).toEqual(whole)
        return true
      }),
      rounds(300),
    )
  })

  test('text that is not JSON is never read as JSON', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...Array.from('{}[]",:\\1atrue un')) }), (text) => {
        const json = new PartialJson()
        for (const character of text) json.push(character)
        json.value()
        return true
      }),
    )
  })
})

describe('an answer in progress', () => {
  const told = (text: string, how = { isWrapped: false, hasFillers: false }): (JsonValue | undefined)[] => {
    const answer = followAnswer(how)
    return Array.from(text, (character) => answer.push(character)).filter((output) => output !== undefined)
  }

  test('is emitted when it grows, but not while a number or literal is incomplete', () => {
    expect(told('{"a":"xy","n":12}')).toEqual([{}, { a: '' }, { a: 'x' }, { a: 'xy' }, { a: 'xy' }, { a: 'xy', n: 12 }])
  })

  test('may be in a fence, but not after prose', () => {
    expect(told('```json\n[1]\n```').at(-1)).toEqual([1])
    expect(told('The answer is {"a":1}')).toEqual([])
  })

  test('is unwrapped, and nulls for absent fields are omitted', () => {
    expect(told('{"value":[1,2]}', { isWrapped: true, hasFillers: false }).at(-1)).toEqual([1, 2])
    expect(told('{"a":null,"b":[null]}', { isWrapped: false, hasFillers: true }).at(-1)).toEqual({ b: [null] })
  })

  test('of a megabyte costs linear time', () => {
    const text = JSON.stringify(Array.from({ length: 20_000 }, (_, n) => ({ n, name: `The name of ${n}` })))
    const answer = followAnswer({ isWrapped: false, hasFillers: false })
    let copied = 0
    let last: JsonValue | undefined
    for (let at = 0; at < text.length; at += 8) {
      const output = answer.push(text.slice(at, at + 8))
      if (output === undefined) continue
      copied += (output as readonly unknown[]).length
      last = output
    }
    expect(copied).toBeLessThan(text.length * 5)
    expect((last as readonly unknown[]).length).toBeGreaterThan(19_000)
  })
})
