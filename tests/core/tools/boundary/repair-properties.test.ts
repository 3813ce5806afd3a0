import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isRepairable, repairArguments } from '#core/tools/boundary/repair.js'
import type { JsonObject, JsonValue } from '#util/json.js'
import { check, tools } from '../support/edit-tools.js'
import { rounds } from '../../../support/length.js'

describe.each(tools)('repairs by %s', (_name, spec) => {
  test('146 repairing repaired arguments changes nothing', async () => {
    await fc.assert(
      fc.asyncProperty(sentArguments, async (sent) => {
        const first = await check(spec, sent)
        fc.pre(first.ok)
        const second = await check(spec, first.text)

        expect(second).toEqual({ ...first, repairs: [] })
      }),
      rounds(400),
    )
  })

  test('the look that precedes a repair finds exactly the arguments that a repair changes or refuses', () => {
    fc.assert(
      fc.property(sentArguments, (sent) => {
        const { value, repairs, conflicts } = repairArguments(spec, sent)

        expect(isRepairable(spec, sent)).toBe(repairs.length + conflicts.length > 0)
        if (!isRepairable(spec, sent)) expect(value).toEqual(sent)
      }),
      rounds(1_000),
    )
  })

  test('the order of the fields makes no difference', async () => {
    await fc.assert(
      fc.asyncProperty(sentArguments, async (sent) => {
        const [forth, back] = [await check(spec, sent), await check(spec, reversed(sent))]

        expect(back.ok).toBe(forth.ok)
        if (forth.ok && back.ok) {
          expect(back.value).toEqual(forth.value)
          expect(back.repairs).toHaveLength(forth.repairs.length)
        }
      }),
      rounds(400),
    )
  })
})

const paths = fc.constantFrom('a', 'b/', '<a>', '[a](a)', '[a](http://a)', '[b/](file://b/)', '<<a>>', '[<a>](<a>)', '')
const flags = fc.oneof(fc.boolean(), fc.constantFrom('true', ' FALSE'))
const wholes = fc.oneof(fc.integer(), fc.constantFrom('1', '+7', '-0', '007'))
const texts = fc.constantFrom('a', '<a>', 'true', '1', '{"limit":"1"}')
/** Now and then, a value of another kind or a field that does not exist. */
const junk = fc.dictionary(fc.constantFrom('limit', 'flag', 'path', 'bogus'), fc.constantFrom(null, 1.5, 'x'), {
  maxKeys: 1,
})

/** Some of the fields, each under any of its names, at times under several. */
function someOf(
  fields: readonly (readonly [names: readonly string[], values: fc.Arbitrary<JsonValue>])[],
): fc.Arbitrary<JsonObject> {
  const field = fc.oneof(...fields.map(([names, values]) => fc.tuple(fc.constantFrom(...names), values)))
  return fc.array(field, { maxLength: 3 }).map((entries) => Object.fromEntries(entries))
}

const edits = someOf([
  [['path', 'filePath', 'file_path', 'file'], paths],
  [['old_string', 'oldString', 'old-string'], texts],
  [['replace_all', 'replaceAll', 'replace-all', 'all'], flags],
  [['expected_replacements', 'expectedReplacements'], fc.constantFrom(1, '2', null)],
])
const roots = someOf([
  [['path', 'filePath', 'file_path', 'file'], paths],
  [['command', 'cmd'], texts],
  [['limit'], wholes],
  [['flag'], flags],
  [['either', 'content'], texts],
  [['paths'], fc.array(paths, { maxLength: 2 })],
  [['edits'], fc.array(edits, { maxLength: 2 })],
  [['child'], someOf([[['is_open', 'isOpen', 'is-open'], flags]])],
])
const sentArguments = fc
  .tuple(roots, fc.oneof({ weight: 4, arbitrary: fc.constant({}) }, junk))
  .map(([root, more]): JsonObject => ({ ...root, ...more }))

function reversed(value: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, member]) => [key, isPlain(member) ? reversed(member) : member]),
  )
}

function isPlain(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
