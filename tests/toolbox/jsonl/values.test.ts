import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseFieldPath, valueAt } from '#toolbox/jsonl/field-path.js'
import { jsonText, valueText } from '#toolbox/jsonl/row-text.js'
import { pathOf } from './support.js'

describe('field paths', () => {
  test.each<[string, (string | number)[]]>([
    ['status', ['status']],
    ['user.name', ['user', 'name']],
    ['.user.name', ['user', 'name']],
    ['tags[0].id', ['tags', 0, 'id']],
    ['tags.[-1]', ['tags', -1]],
    ['["any key"]', ['any key']],
    ['a[\'b.c\']["d"]', ['a', 'b.c', 'd']],
    ['a[""]', ['a', '']],
    ['_x1', ['_x1']],
  ])('%j', (text, steps) => {
    expect(pathOf(text).steps).toEqual(steps)
  })

  test.each([
    ['', 'the path is empty (at character 1)'],
    ['.', '`.` cannot be read at character 1'],
    ['a..b', '`a..b` cannot be read at character 2'],
    ['a b', '`a b` cannot be read at character 2'],
    ['1a', '`1a` cannot be read at character 1'],
    ['a[x]', '`a[x]` cannot be read at character 2'],
    ['a[1', '`a[1` cannot be read at character 2'],
    ['a.', '`a.` cannot be read at character 2'],
    ['ä', '`ä` cannot be read at character 1'],
  ])('%j is rejected', (text, problem) => {
    expect(parseFieldPath(text)).toEqual({ ok: false, problem })
  })

  test('an index is for arrays, a key for objects, and nothing is inherited', () => {
    const value = JSON.parse('{"a":[1,{"b":2}],"s":"text","__proto__":{"p":1}}') as unknown
    const at = (text: string): unknown => valueAt(value, pathOf(text))
    expect([
      at('a[1].b'),
      at('a[-2]'),
      at('a.b'),
      at('a.length'),
      at('s[0]'),
      at('toString'),
      at('__proto__.p'),
    ]).toEqual([2, 1, undefined, undefined, undefined, undefined, 1])
  })
})

describe('values as text', () => {
  test('a value is shown as JSON with one spacing, which has the same value', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(JSON.parse(jsonText(value))).toEqual(JSON.parse(JSON.stringify(value)))
      }),
    )
    expect(jsonText(JSON.parse(' {"id" :1.0,"a":[ 1,2 ,{}], "t":"\\u00e9\\n\\/é, x:y"} '))).toBe(
      '{"id": 1, "a": [1, 2, {}], "t": "é\\n/é, x:y"}',
    )
  })

  test.each<[unknown, string | undefined]>([
    ['text', 'text'],
    [1.5, '1.5'],
    [true, 'true'],
    [[1, 'a'], '[1, "a"]'],
    [null, undefined],
    [undefined, undefined],
  ])('%j is %j', (value, text) => {
    expect(valueText(value)).toBe(text)
  })

  test('values nested a million deep are shown without a crash', () => {
    const deep: unknown = JSON.parse(`{"a":${'['.repeat(1_000_000)}${']'.repeat(1_000_000)},"b":1}`)
    expect(jsonText(deep)).toMatch(/^\{"a": \[+…\]+, "b": 1\}$/)
  })
})
