import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { defineTool } from '#core/tools/define-tool.js'
import { message, refused } from '../support/refused.js'

describe('the message of a rejected call', () => {
  const nested = defineTool({
    name: 'find',
    description: '',
    parameters: z
      .object({
        filters: z.array(z.object({ name: z.string(), value: z.number() })),
        from: z.int().optional(),
        to: z.int().optional(),
      })
      .refine(({ from = 0, to = 0 }) => from <= to, 'from must not be after to'),
    handler: () => 'found',
  })

  test('TR-06 paths are dotted, with numbers for items and a mark for the root', async () => {
    expect(await message(nested, { filters: [{ name: 'a', value: 'b' }, {}] })).toEqual([
      'Invalid arguments: `find` was not run.',
      '- filters.0.value: Invalid input: expected number, received string ("b")',
      '- filters.1.name: Invalid input: expected string, received undefined',
      '- filters.1.value: Invalid input: expected number, received undefined',
      'Received: filters = a list of 2',
      'Correct this and call `find` again with one JSON object of all its fields: filters (required), from, to.',
    ])
    expect(await message(nested, { filters: [], from: 2, to: 1 })).toContain('- <root>: from must not be after to')
  })

  test('of many problems and fields as many as fit are listed, at most twelve, with the number of the others', async () => {
    const sent = {
      filters: Array.from({ length: 40 }, () => ({ name: 'a' })),
      ...Object.fromEntries(Array.from({ length: 30 }, (_, index) => [`f${index}`, index])),
    }
    const lines = await message(nested, sent)

    expect(lines.filter((line) => line.startsWith('- '))).toHaveLength(7)
    expect(lines).toContain('and at least 63 more problems')
    expect(lines.find((line) => line.startsWith('Received: '))).toMatch(/; f10 = 10; and 19 more fields$/)
    expect((await refused(nested, sent)).outcome.metadata).toMatchObject({
      errors: { length: 12 },
      fields: { length: 12 },
    })
  })

  test('a limit on counting problems is mentioned', async () => {
    const lines = await message(nested, { filters: new Array(1_000).fill(1) })

    expect(lines).toContain('and at least 43 more problems')
  })

  test('a string is shown in part, with line breaks escaped; numbers, booleans and null as they are; lists and objects by size', async () => {
    const sent = {
      filters: 1,
      note: 'a\nb',
      long: 'l'.repeat(150),
      query: 'q'.repeat(250),
      body: 'b'.repeat(250),
      on: true,
      none: null,
      list: [1, 2],
      object: { a: 1 },
    }
    const line = (await message(nested, sent)).find((each) => each.startsWith('Received: '))

    expect(line).toBe(
      `Received: filters = 1; note = "a\\nb"; long = "${'l'.repeat(80)}"… (150 characters); query = "${'q'.repeat(80)}"… (250 characters); body = a string of 250 characters; on = true; none = null; list = a list of 2; object = an object of 1 fields`,
    )
  })
})
