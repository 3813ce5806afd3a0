import { expect, test } from 'vitest'
import type { JsonObject } from '#util/json.js'
import { mergeJson } from '#util/json.js'

test.each<[string, JsonObject, JsonObject | undefined, JsonObject]>([
  ['nothing', { a: 1 }, undefined, { a: 1 }],
  ['a new member', { a: 1 }, { b: 2 }, { a: 1, b: 2 }],
  ['another value', { a: 1 }, { a: null }, { a: null }],
  ['objects, deeply', { a: { b: { c: 1 }, d: 2 } }, { a: { b: { e: 3 } } }, { a: { b: { c: 1, e: 3 }, d: 2 } }],
  ['a list for a list', { a: [1, 2] }, { a: [3] }, { a: [3] }],
  ['a list for an object', { a: { b: 1 } }, { a: [3] }, { a: [3] }],
  ['an object for a list', { a: [3] }, { a: { b: 1 } }, { a: { b: 1 } }],
  ['undefined, which says nothing', { a: 1 }, { a: undefined }, { a: 1 }],
])('a merge with %s', (_name, base, changes, wanted) => {
  expect(mergeJson(base, changes)).toStrictEqual(wanted)
})

test('a merge changes nothing in place, and no prototype', () => {
  const base = Object.freeze({ a: Object.freeze({ b: 1 }) })
  const hostile = JSON.parse('{"__proto__": {"polluted": true}, "a": {"c": 2}}') as JsonObject

  const merged = mergeJson(base, hostile)

  expect(merged['a']).toEqual({ b: 1, c: 2 })
  expect(Object.getPrototypeOf(merged)).toBe(Object.prototype)
  expect({}).not.toHaveProperty('polluted')
})
