import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { checkArguments, previewArguments } from '#core/tools/boundary/check-arguments.js'
import { defineTool } from '#core/tools/define-tool.js'
import { envelopeOf } from '#core/tools/boundary/envelope.js'
import type { ToolSpec } from '#core/tools/tool-spec.js'
import { message, refused } from '../support/refused.js'
import { rounds } from '../../../support/length.js'

const write = defineTool({
  name: 'write',
  description: 'Writes.',
  parameters: z.object({ path: z.string(), content: z.string(), mode: z.int().optional() }),
  handler: () => 'written',
})
const rawWrite = defineTool({
  name: 'write',
  description: 'Writes.',
  parameters: write.parameters,
  handler: () => 'written',
})
const specs: [string, ToolSpec][] = [
  ['a typed schema', write],
  ['a JSON Schema', rawWrite],
]

const ERRORS: Record<string, unknown[]> = {
  'a typed schema': [
    { type: 'invalid_type', loc: ['path'], msg: 'Invalid input: expected string, received number' },
    { type: 'invalid_type', loc: ['content'], msg: 'Invalid input: expected string, received undefined' },
    { type: 'unknown_field', loc: ['conten'], msg: 'unknown field' },
  ],
  'a JSON Schema': [
    { type: 'required', loc: [], msg: 'Instance does not have required property "content".' },
    { type: 'type', loc: ['path'], msg: 'Instance type "number" is invalid. Expected "string".' },
    { type: 'additionalProperties', loc: [], msg: 'Property "conten" does not match additional properties schema.' },
  ],
}

describe.each(specs)('checkArguments by %s', (name, spec) => {
  test('valid arguments are used exactly as received', async () => {
    const text = ' {"content": "é", "path":"a" }\n'

    expect(await checkArguments(spec, text)).toEqual({
      ok: true,
      value: { path: 'a', content: 'é' },
      text,
      repairs: [],
    })
  })

  test('TR-02 invalid arguments are reported field by field', async () => {
    expect(await refused(spec, { path: 5, conten: 'hello' })).toEqual({
      ok: false,
      text: '{"path":5,"conten":"hello"}',
      outcome: {
        kind: 'failed',
        errorType: 'ValidationError',
        retry: true,
        content: expect.stringContaining('Invalid arguments: `write` was not run.\n- ') as string,
        metadata: {
          tool: 'write',
          fields: ['path', 'conten'],
          errors: ERRORS[name],
        },
      },
    })
    expect((await message(spec, { path: 5, conten: 'hello' })).filter((line) => !line.startsWith('- '))).toEqual([
      'Invalid arguments: `write` was not run.',
      'Received: path = 5; conten = "hello"',
      'Correct this and call `write` again with one JSON object of all its fields: path (required), content (required), mode.',
    ])
    expect(await message(spec, { path: 5, conten: 'hello' })).toContain(
      name === 'a typed schema'
        ? '- path: Invalid input: expected string, received number (number)'
        : '- path: Instance type "number" is invalid. Expected "string". (number)',
    )
  })

  test('HC-17 TR-05 arguments that are not JSON are rejected, and never completed', async () => {
    const checked = await refused(spec, '{"path": "a", "content": "secret tex')

    expect(envelopeOf(checked.outcome)).toEqual({
      ok: false,
      content: [
        'Invalid arguments: `write` was not run.',
        '- <root>: invalid JSON arguments: Unterminated string at position 36; the text may have been cut off after 36 characters',
        'Received: 36 characters of text.',
        'Correct this and call `write` again with one JSON object of all its fields: path (required), content (required), mode.',
      ].join('\n'),
      metadata: {
        error_type: 'InvalidArguments',
        retry: true,
        tool: 'write',
        errors: [
          { type: 'json', loc: [], msg: expect.stringContaining('invalid JSON arguments: Unterminated') as string },
        ],
      },
    })
  })

  test.each([
    '{"a":1}}',
    '{a:1}',
    "{'a':1}",
    '{"a":1,}',
    '{"a":undefined}',
    'path=a',
    '{"a":NaN}',
    '\ufeff{}',
    '{"a":1',
  ])('the text %j is rejected without quoting it in the message', async (text) => {
    const { outcome } = await refused(spec, text)

    expect(outcome.errorType).toBe('InvalidArguments')
    expect(outcome.content).toContain('- <root>: invalid JSON arguments: ')
    expect(outcome.content).not.toContain('"a"')
  })

  test.each<[string, boolean]>([
    ['{"path":"a" "content":"b"}', false],
    ['{"path":"a", content}', false],
    ['{"path":"a"', true],
    ['{"path":', true],
    ['[1, 2', true],
    ['{"path":"a', true],
  ])('a text that may have been cut off is recognized: %s, %j', async (text, isCut) => {
    const { content } = (await refused(spec, text)).outcome

    expect(content.includes('may have been cut off')).toBe(isCut)
  })

  test.each<[string, string]>([
    ['[1]', '(list)'],
    ['5', '(number)'],
    ['null', '(null)'],
    ['"a"', '("a")'],
    ['true', '(boolean)'],
  ])('%s is not an object', async (text, shown) => {
    const { outcome } = await refused(spec, text)

    expect(outcome.errorType).toBe('InvalidArguments')
    expect(outcome.content).toContain(`- <root>: arguments must be a JSON object ${shown}\n`)
  })

  test('an empty call of a tool with required fields is reported as missing fields', async () => {
    const checked = await refused(spec, '')

    expect(checked.outcome.errorType).toBe('ValidationError')
    expect(checked.outcome.content.match(/^- .*\b(path|content)\b/gm)).toHaveLength(2)
    expect(checked.outcome.content).toContain('\nReceived: no fields.\n')
    expect(checked.text).toBe('{"invalid_arguments":""}')
  })

  test('147 a huge string in an invalid call stays out of the short message', async () => {
    const { outcome, text } = await refused(spec, { content: 'x'.repeat(200_000), mode: 'y'.repeat(100_000) })

    expect(outcome.content.length).toBeLessThanOrEqual(1_200)
    expect(outcome.content).toContain('content = a string of 200000 characters')
    expect(outcome.content).not.toMatch(/x{3}|y{81}/)
    expect(JSON.stringify(outcome.metadata).length).toBeLessThan(1_000)
    expect(text).toHaveLength(300_024)
  })

  test('148 of a field with a sensitive name only the length is shown, at any depth', async () => {
    const sent = {
      apiKey: 'sk-1',
      token: 'sk-2',
      clientSecret: 'sk-3',
      PASSWORD: 'sk-4',
      authorization: 'sk-5',
      auth: { key: 'sk-6' },
    }
    const { outcome } = await refused(spec, sent)

    expect(JSON.stringify(outcome)).not.toContain('sk-')
    expect(outcome.content).toContain('apiKey = a string of 4 characters')
  })

  test.each<[string, string]>([
    ['149 an object that does not fit is kept as received', '{"path": 5}'],
    ['149 an empty object is kept only as received', '{}'],
  ])('%s', async (_name, text) => {
    expect((await refused(spec, text)).text).toBe(text)
  })

  test.each<[string, string]>([
    ['{"path": "a', '{"invalid_arguments":"{\\"path\\": \\"a"}'],
    ['[1]', '{"invalid_arguments":"[1]"}'],
    ['"{"', '{"invalid_arguments":"\\"{\\""}'],
    ['null', '{"invalid_arguments":"null"}'],
  ])('149 the history shows the start of malformed arguments, not an empty object: %s', async (text, kept) => {
    expect((await refused(spec, text)).text).toBe(kept)
  })

  test('149 the start that is kept is short, and no surrogate pair is split', async () => {
    const { text } = await refused(spec, `${'x'.repeat(199)}😀${'y'.repeat(10_000)}`)

    expect(JSON.parse(text)).toEqual({ invalid_arguments: `${'x'.repeat(199)}…` })
  })

  test('a message is bounded whatever is sent, and shows no keyword of a schema', async () => {
    const name = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 200 }),
      fc.constantFrom('path', 'content', '__proto__', 'a\nb'),
    )
    await fc.assert(
      fc.asyncProperty(fc.dictionary(name, fc.jsonValue(), { maxKeys: 40 }), async (sent) => {
        const checked = await checkArguments(spec, JSON.stringify(sent))
        if (checked.ok) return
        const { content, metadata } = checked.outcome

        expect(content.length).toBeLessThanOrEqual(1_200)
        expect(content.startsWith('Invalid arguments: `write` was not run.\n- ')).toBe(true)
        expect(content).toContain('\nCorrect this and call `write` again')
        expect(JSON.stringify(metadata).length).toBeLessThan(10_000)
        expect(content.replace(/ \(.*\)$|^Received: .*$/gm, '')).not.toMatch(
          /anyOf|\$ref|additionalProperties|minProperties/,
        )
      }),
    )
  })

  test('no string makes it reject, and it always keeps an object', async () => {
    const valid = fc.jsonValue().map((value) => JSON.stringify({ path: 'a', content: 'b', more: value }))
    const mutated = fc
      .tuple(valid, fc.nat(), fc.nat(), fc.string({ unit: 'binary', maxLength: 3 }))
      .map(([text, from, length, piece]) => {
        const start = from % (text.length + 1)
        return text.slice(0, start) + piece + text.slice(start + (length % 5))
      })
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(
          mutated,
          fc.string(),
          fc.json(),
          fc.json().map((text) => JSON.stringify(text)),
        ),
        async (text) => {
          const checked = await checkArguments(spec, text)

          const kept: unknown = JSON.parse(checked.text)
          expect(Object.prototype.toString.call(kept)).toBe('[object Object]')
          if (!checked.ok) expect(checked.outcome.content.length).toBeLessThanOrEqual(1_200)
        },
      ),
      rounds(500),
    )
  })
})

describe('tools that were not created by defineTool', () => {
  const plain: ToolSpec = {
    name: 'plain',
    description: '',
    parameters: { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] },
    call: (args) => Promise.resolve({ kind: 'succeeded', content: JSON.stringify(args) }),
  }

  test('their schema is checked first, then their own rule', async () => {
    const seen: unknown[] = []
    const spec: ToolSpec = {
      ...plain,
      validate: (args) => {
        seen.push(args)
        if (args['n'] === 0)
          return Promise.resolve({ ok: false, issues: [{ path: ['n'], type: 'zero', message: 'must not be 0' }] })
        return { ok: true, value: { ...args, extra: true } }
      },
    }

    expect(await checkArguments(spec, '{"n":1}')).toMatchObject({ ok: true, value: { n: 1, extra: true } })
    expect((await refused(spec, '{"n":0}')).outcome.content).toContain('- n: must not be 0 (number)')
    expect((await refused(spec, '{"n":"a"}')).outcome.content).toContain(
      '- n: Instance type "string" is invalid. Expected "number". ("a")',
    )
    expect(seen).toEqual([{ n: 1 }, { n: 0 }])
  })

  test('a typed tool with another schema is checked by both', async () => {
    const narrowed = { ...write, parameters: { ...write.parameters, maxProperties: 2 } }

    expect((await refused(narrowed, { path: 'a', content: 'b', mode: 1 })).outcome.content).toContain(
      '- <root>: Instance does not have at least 2 properties.',
    )
    expect((await refused(narrowed, { path: 'a', content: 5 })).outcome.content).toContain(
      '- content: Instance type "number" is invalid.',
    )
  })

  test('a rule that throws rejects the call', async () => {
    const spec: ToolSpec = {
      ...plain,
      validate: () => {
        throw new TypeError('oops')
      },
    }

    expect((await refused(spec, '{"n":1}')).outcome).toMatchObject({
      errorType: 'ValidationError',
      retry: true,
      content: expect.stringContaining('- <root>: could not be checked: oops') as string,
    })
  })

  test('an unusable schema is reported as such, and is not retryable', async () => {
    const parameters = {
      type: 'object',
      get pattern(): never {
        throw new Error('It is gone.')
      },
    }
    const checked = await refused({ ...plain, parameters }, '{"n":1}')

    expect(checked).toEqual({
      ok: false,
      text: '{"n":1}',
      outcome: {
        kind: 'failed',
        errorType: 'InvalidToolSchema',
        retry: false,
        content: '`plain` was not run and cannot be used: the schema of its arguments is broken. It is gone.',
        metadata: { tool: 'plain' },
      },
    })
  })

  test('arguments nested without end neither crash nor hang', async () => {
    const recursive: ToolSpec = {
      ...plain,
      parameters: { type: 'object', properties: { a: { $ref: '#' }, is_x: { type: 'boolean' } } },
    }
    const deep = `${'{"a":'.repeat(50_000)}{}${'}'.repeat(50_000)}`

    expect((await refused(recursive, deep)).outcome.content).toContain('too large or too deeply nested')
    expect((await checkArguments(plain, `{"n":1,"x":${'['.repeat(50_000)}${']'.repeat(50_000)}}`)).ok).toBe(true)
  })
})

describe('previewArguments', () => {
  test.each<[string, string]>([
    ['{"a": 1}', '{"a": 1}'],
    ['{}', '{}'],
    ['', '{"invalid_arguments":""}'],
    ['[1]', '{"invalid_arguments":"[1]"}'],
    ['{"a":', '{"invalid_arguments":"{\\"a\\":"}'],
  ])('149 arguments in any form are kept as a short object: %j, %j', (text, kept) => {
    expect(previewArguments(text)).toBe(kept)
  })
})
