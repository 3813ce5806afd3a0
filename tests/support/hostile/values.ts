import type { JsonSchema, JsonValue } from 'thinharness'
import { hostile } from './hostile.js'
import type { Hostile } from './hostile.js'
import { number, object, text } from '../troublesome.js'

function nested(depth: number): { readonly schema: JsonSchema; readonly value: JsonValue } {
  let schema: JsonSchema = text
  let value: JsonValue = 'x'
  for (let level = 0; level < depth; level++) {
    schema = object({ a: schema }, ['a'])
    value = { a: value }
  }
  return { schema, value }
}

const deep = nested(200)
const doubling = Object.fromEntries(
  Array.from({ length: 30 }, (_, index) => [
    `d${index}`,
    index === 29 ? text : object({ l: { $ref: `#/$defs/d${index + 1}` }, r: { $ref: `#/$defs/d${index + 1}` } }),
  ]),
)
const options = Array.from({ length: 5_000 }, (_, index) => `option ${index}`)

/** Limits, large documents and values. */
export const LIMITS: readonly Hostile[] = [
  hostile(
    'exclusive limits of draft 4',
    object({ a: { type: 'number', minimum: 0, exclusiveMinimum: true, maximum: 9, exclusiveMaximum: false } }, ['a']),
    { fits: { a: 9 }, misfits: { a: 0 }, at: 'a' },
  ),
  hostile('exclusive limits of draft 4 without limits', object({ a: { type: 'number', exclusiveMinimum: true } }), {
    fits: { a: 0 },
    misfits: { a: 'x' },
    at: 'a',
  }),
  hostile(
    'exclusive limits of both drafts',
    object({ a: { type: 'number', minimum: 0, exclusiveMinimum: true }, b: { type: 'number', exclusiveMaximum: 5 } }),
    { fits: { a: 1, b: 4 }, misfits: { a: 0 }, at: 'a' },
  ),
  hostile(
    'limits beyond every number',
    JSON.parse(
      '{"type":"object","properties":{"a":{"type":"number","maximum":1e400,"minimum":-1e400},"b":{"type":"string","maxLength":1e300}}}',
    ),
    { fits: { a: 1, b: 'x' }, misfits: { a: 'x' }, at: 'a' },
  ),
  hostile(
    'whole numbers of 64 bits',
    JSON.parse(
      '{"type":"object","properties":{"a":{"type":"integer","minimum":-9223372036854775808,"maximum":9223372036854775807}},"required":["a"]}',
    ),
    { fits: { a: 1 }, misfits: { a: 'x' }, at: 'a' },
  ),
  hostile('steps of a hundredth', object({ a: { type: 'number', multipleOf: 0.01 } }, ['a']), {
    fits: { a: 19.99 },
    misfits: { a: 0.005 },
    at: 'a',
  }),
  hostile(
    'steps of zero and below',
    object({ a: { type: 'number', multipleOf: 0 }, b: { type: 'number', multipleOf: -1 } }),
    { fits: { a: 1, b: 2 } },
  ),
  hostile(
    'limits as text',
    object({
      a: { type: 'string', minLength: '2' },
      b: { type: 'array', items: text, maxItems: '3' },
      c: { type: 'number', minimum: '1' },
    }),
    { fits: { a: 'xx', b: ['x'], c: 2 } },
  ),
  hostile('negative and broken counts', object({ a: { type: 'string', minLength: -1, maxLength: 2.5 } }), {
    fits: { a: 'x' },
  }),
  hostile('limits that no value keeps', object({ a: { type: 'string', minLength: 5, maxLength: 2 }, b: text }), {
    fits: { b: 'x' },
    misfits: { a: 'xxx' },
    at: 'a',
  }),
  hostile(
    'flags as text',
    object({
      a: { type: 'array', items: number, uniqueItems: 'true' },
      b: { type: 'object', additionalProperties: 'false' },
    }),
    { fits: { a: [1], b: {} } },
  ),
  hostile(
    '`additionalProperties: null`',
    { ...object({ a: text }), additionalProperties: null },
    { fits: { a: 'x' }, misfits: { a: 1 }, at: 'a' },
  ),
  hostile('a deep document', deep.schema, { fits: deep.value, misfits: { a: 1 }, at: 'a' }),
  hostile(
    'references that double',
    { ...object({ a: { $ref: '#/$defs/d0' } }), $defs: doubling },
    { fits: { a: { l: {}, r: {} } }, misfits: { a: 5 }, at: 'a' },
  ),
  hostile('an enum of 5,000', object({ a: { type: 'string', enum: options } }, ['a']), {
    fits: { a: 'option 4999' },
    misfits: { a: 'other' },
    at: 'a',
  }),
  hostile(
    '500 fields',
    object(Object.fromEntries(options.slice(0, 500).map((name) => [name.replace(' ', '_'), text]))),
    { fits: { option_7: 'x' }, misfits: { option_7: 1 }, at: 'option_7' },
  ),
  hostile(
    'a description of 100,000 characters',
    { ...object({ a: { ...text, description: 'd'.repeat(100_000) } }) },
    { fits: { a: 'x' }, misfits: { a: 1 }, at: 'a' },
  ),
  hostile(
    'half of a surrogate pair in texts',
    object({ a: { type: 'string', description: 'x\ud83d', enum: ['ok', 'b\ude00'] } }, ['a']),
    { fits: { a: 'ok' }, misfits: { a: 'no' }, at: 'a' },
  ),
]
