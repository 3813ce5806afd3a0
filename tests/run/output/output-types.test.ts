import { describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { defineTool, evidence, Harness, ModelRetry } from 'thinharness'
import type { JsonSchema, RunEvent } from 'thinharness'
import type { OutputContext } from '#core/tools/output-type.js'
import { ScriptedModel } from 'thinharness/testing'
import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eventsOf, failureOf, harnessOf, ofKind, output, tool } from '../../harness/support.js'
import { temporaryFolder } from '../../support/folder.js'

const NATIVE = { supportsJsonSchemaOutput: true, defaultStructuredOutputMode: 'native' } as const
const answer = z.object({ answer: z.string() })
const FAILED = 'Validation of the structured output failed.'

describe('several output types', () => {
  const refund = z.object({ kind: z.literal('refund'), amount: z.number() })
  const reply = z.object({ kind: z.literal('reply'), text: z.string() })

  test.each([
    ['tool', {}],
    ['native', NATIVE],
  ])(
    'SO-11 they are requested as one in any mode, and the answer is read by the one that fits: %s',
    async (mode, capabilities) => {
      const script = new ScriptedModel({ capabilities })
      const value = { kind: 'refund', amount: 5 }
      using model = mode === 'native' ? script.says(JSON.stringify({ value })) : script.calls('final_result', { value })
      const result = await new Harness({ model, builtinTools: [], outputType: [reply, refund] }).run('Go.')
      expect(result.output).toEqual(value)
      if (result.output.kind === 'refund') expect(result.output.amount).toBe(5)
      const { tools, structuredOutput } = model.requests[0]!.constants
      const sent = mode === 'native' ? structuredOutput?.schema : tools[0]?.parameters
      expect(sent).toMatchObject({ properties: { value: { anyOf: [{ type: 'object' }, { type: 'object' }] } } })
    },
  )

  test('SO-12 if all reject an answer, the errors are those of the nearest one', async () => {
    using model = new ScriptedModel()
      .calls('final_result', { value: { kind: 'refund', amount: 'five' } })
      .calls('final_result', { value: { kind: 'refund', amount: 5 } })
    await new Harness({ model, builtinTools: [], outputType: [reply, refund] }).run('Go.')
    expect(model.heard[1]).toMatchObject({
      outputs: [
        { content: expect.stringContaining('- amount: Invalid input: expected number, received string') as unknown },
      ],
    })
  })

  test('SO-11 each keeps its own definitions, and an empty list is rejected', async () => {
    const node = (type: string): JsonSchema => ({
      type: 'object',
      properties: { next: { $ref: '#/$defs/node' } },
      required: ['next'],
      $defs: { node: { anyOf: [{ type }, { type: 'object', properties: { next: { $ref: '#/$defs/node' } } }] } },
    })
    using model = new ScriptedModel().calls('final_result', { value: { next: { next: 'x' } } })
    const harness = new Harness({ model, builtinTools: [], outputType: [node('number'), node('string')] })
    expect((await harness.run('Go.')).output).toEqual({ next: { next: 'x' } })
    expect(Object.keys(model.requests[0]?.constants.tools[0]?.parameters['$defs'] ?? {})).toHaveLength(2)
    expect(() => new Harness({ outputType: [] })).toThrow('Expected `outputType` to have at least one schema.')
  })
})

describe('strict native answers', () => {
  test('SO-30 null in place of an absent field is not part of the answer, nor of its log', async () => {
    const outputType = z.object({ a: z.string(), b: z.string().optional(), c: z.string().nullable() })
    using model = new ScriptedModel({ capabilities: NATIVE }).says('{"a":"x","b":null,"c":null}')
    const stream = harnessOf({ model, outputType }).stream('Go.')
    const events = await eventsOf(stream)
    expect((await stream.result).output).toEqual({ a: 'x', c: null })
    expect(ofKind(events, 'model_message')[0]?.resolution).toMatchObject({ output: { a: 'x', c: null } })
    expect(model.requests[0]?.constants.structuredOutput).toMatchObject({ strict: true })
  })

  test('SO-30 a schema without a strict form is sent as it is, or as a tool if the provider accepts nothing else', async () => {
    const outputType = z.record(z.string(), z.number())
    using open = new ScriptedModel({ capabilities: NATIVE }).says('{"a":1}')
    expect((await harnessOf({ model: open, outputType }).run('Go.')).output).toEqual({ a: 1 })
    expect(open.requests[0]?.constants.structuredOutput).toMatchObject({ strict: false })
    using closed = new ScriptedModel({ capabilities: { ...NATIVE, nativeSchemas: 'closed' } }).calls('final_result', {
      a: 1,
    })
    expect((await harnessOf({ model: closed, outputType }).run('Go.')).output).toEqual({ a: 1 })
    expect(() => harnessOf({ model: closed, outputType, outputMode: 'native' })).toThrow(
      '`outputMode` cannot be `native`: the provider cannot enforce a schema with maps, open or recursive parts; use `tool` or `prompted`.',
    )
  })
})

describe('a validator of the caller', () => {
  test('SO-12 it may ask for a retry in words that the model reads, and learns the place of the answer', async () => {
    const seen: [string, OutputContext][] = []
    const outputValidator = async ({ answer: said }: { answer: string }, context: OutputContext): Promise<void> => {
      await Promise.resolve()
      seen.push([said, context])
      if (said !== 'yes') throw new ModelRetry('Say yes.')
    }
    using model = new ScriptedModel()
      .calls('look')
      .calls('final_result', { answer: 'no' })
      .calls('final_result', { answer: 'yes' })
    const harness = harnessOf({ model, tools: [tool('look')], outputType: answer, outputValidator, root: tmpdir() })
    const result = await harness.run('Go.', { metadata: { user: 'ann' } })
    expect([result.output, result.usage.outputRetries]).toEqual([{ answer: 'yes' }, 1])
    const content = `${FAILED}\n\nSay yes.\n\nCall \`final_result\` again with valid arguments.`
    expect(model.heard[2]).toMatchObject({
      outputs: [output('call_2', content, { ok: false })],
    })
    const [, context] = seen[0]!
    expect(seen.map(([said]) => said)).toEqual(['no', 'yes'])
    expect(context).toMatchObject({ runId: result.runId, metadata: { user: 'ann' }, root: tmpdir() })
    expect(context.transcript.map(({ role }) => role).slice(0, 3)).toEqual(['user', 'assistant', 'tool'])
  })

  test('SO-14 a validator of text asks again by a message', async () => {
    const outputValidator = (text: string): void => {
      if (text.length > 3) throw new ModelRetry('Three letters at most.')
    }
    using model = new ScriptedModel().says('Certainly.').says('Yes')
    const result = await harnessOf({ model, outputValidator }).run('Go.')
    expect([result.output, result.text, result.usage.outputRetries]).toEqual(['Yes', 'Yes', 1])
    expect(model.heard[1]).toEqual({
      kind: 'correction',
      prompt: `${FAILED}\n\nThree letters at most.\n\nGive the final answer again.`,
    })
  })

  test('SO-15 a validator that is never satisfied ends the run when no retry is left; any other exception ends it at once', async () => {
    const outputValidator = (): never => {
      throw new ModelRetry('No.')
    }
    using model = new ScriptedModel().says('a').says('b')
    const spent = await failureOf(harnessOf({ model, outputValidator }).run('Go.'))
    expect(spent).toMatchObject({ code: 'output_validation_failed', run: { usage: { outputRetries: 1 } } })
    const broken = (): never => {
      throw new TypeError('The database is gone.')
    }
    using other = new ScriptedModel().says('a')
    const failure = await failureOf(harnessOf({ model: other, outputValidator: broken }).run('Go.'))
    expect(failure).toMatchObject({ code: 'error', cause: { message: 'The database is gone.' } })
    expect(() => harnessOf({ outputValidator: 'x' as never })).toThrow('`outputValidator`')
  })

  test('SO-12 a validator that never answers is abandoned when the run is aborted', async () => {
    const controller = new AbortController()
    const outputValidator = vi.fn(() => {
      setImmediate(() => {
        controller.abort()
      })
      return new Promise<void>(() => undefined)
    })
    using model = new ScriptedModel().says('a')
    const failure = await failureOf(harnessOf({ model, outputValidator }).run('Go.', { signal: controller.signal }))
    expect(failure.code).toBe('cancelled')
  })
})

describe('a streamed answer', () => {
  const outputs = (events: readonly RunEvent[]): unknown[] =>
    ofKind(events, 'output_delta').map((event) => event.output)
  const outputType = z.object({ title: z.string(), tags: z.array(z.string()) })
  const whole = { title: 'A long title', tags: ['one', 'two'] }

  test.each([
    ['native', (script: ScriptedModel) => script.says(JSON.stringify(whole)), NATIVE],
    ['prompted', (script: ScriptedModel) => script.says(`\`\`\`json\n${JSON.stringify(whole)}\n\`\`\``), {}],
    ['tool', (script: ScriptedModel) => script.calls('look').calls('final_result', whole), {}],
  ] as const)(
    'ST-03 it is emitted in parts, the last one complete (mode %s)',
    async (outputMode, script, capabilities) => {
      using model = script(new ScriptedModel({ capabilities }))
      const harness = harnessOf({ model, outputType, outputMode, tools: [tool('look')] })
      const events = await eventsOf(harness.stream('Go.', { deltas: true }))
      const told = outputs(events)
      expect(told.length).toBeGreaterThan(3)
      expect(told.at(-1)).toEqual(whole)
      for (const part of told) expect(whole.title.startsWith((part as { title?: string }).title ?? '')).toBe(true)
    },
  )

  test('ST-03 it is not emitted without a listener for deltas, nor for text that is not an answer', async () => {
    using model = new ScriptedModel({ capabilities: NATIVE }).says(JSON.stringify(whole)).says('Plain text.')
    const harness = harnessOf({ model, outputType })
    expect(outputs(await eventsOf(harness.stream('Go.', { deltas: false })))).toEqual([])
    const text = harnessOf({ model })
    expect(outputs(await eventsOf(text.stream('Go.', { deltas: true })))).toEqual([])
  })

  test('SO-12 a streamed answer starts again with a correction', async () => {
    using model = new ScriptedModel({ capabilities: NATIVE }).says('{"title":5}').says(JSON.stringify(whole))
    const told = outputs(await eventsOf(harnessOf({ model, outputType }).stream('Go.', { deltas: true })))
    expect(told).toContainEqual({ title: 5 })
    expect(told.at(-1)).toEqual(whole)
  })
})

describe('evidence', () => {
  const source = z.object({
    file: z.string().optional(),
    from_line: z.number().optional(),
    to_line: z.number().optional(),
    row: z.number().optional(),
    path: z.string().optional(),
    call_id: z.string().optional(),
    quote: z.string(),
  })
  const outputType = z.object({ claims: z.array(z.object({ claim: z.string(), source: source.meta(evidence) })) })
  type Source = z.infer<typeof source>
  const claiming = (given: Source) => ({ claims: [{ claim: 'It is so.', source: given }] })

  async function inWorkspace<T>(work: (root: string) => Promise<T>): Promise<T> {
    const folder = temporaryFolder()
    const root = join(folder, 'root')
    await mkdir(root)
    await mkdir(join(folder, 'outside'))
    await writeFile(join(folder, 'outside', 'secret.txt'), 'The secret is here.\n')
    await symlink(join(folder, 'outside'), join(root, 'link'))
    await writeFile(join(root, 'a.md'), 'First line.\nThe sky\n  is   blue.\nLast line.\n')
    await writeFile(join(root, 'rows.jsonl'), '{"id":1,"user":{"name":"Ann","tags":["x"]}}\nno JSON\n')
    return await work(root)
  }

  const good: [string, Source][] = [
    [
      'lines of a file, whatever their white space',
      { file: 'a.md', from_line: 2, to_line: 3, quote: 'The sky is blue.' },
    ],
    ['one line of a file', { file: 'a.md', from_line: 4, quote: 'Last' }],
    ['a row and a path of a JSONL file', { file: 'rows.jsonl', row: 1, path: 'user.name', quote: 'Ann' }],
    ['a value of a row that is no text', { file: 'rows.jsonl', row: 1, path: 'user.tags', quote: '["x"]' }],
    ['a whole row', { file: 'rows.jsonl', row: 2, quote: 'no JSON' }],
    ['the result of a call', { call_id: 'call_1', quote: 'forty-two' }],
  ]
  test.each(good)('SO-12 valid evidence is accepted: %s', async (_name, given) => {
    await inWorkspace(async (root) => {
      using model = new ScriptedModel().calls('look').calls('final_result', claiming(given))
      const look = tool('look', () => 'It is forty-two.')
      const result = await harnessOf({ model, tools: [look], outputType, root }).run('Go.')
      expect([result.output, result.usage.outputRetries]).toEqual([claiming(given), 0])
    })
  })

  const bad: [string, Source, string][] = [
    [
      'words that are not there',
      { file: 'a.md', from_line: 2, to_line: 3, quote: 'The sky is green.' },
      '`quote` is not in lines 2 to 3 of `a.md`',
    ],
    ['other lines', { file: 'a.md', from_line: 1, quote: 'Last line.' }, '`quote` is not in line 1 of `a.md`'],
    ['lines that are not there', { file: 'a.md', from_line: 9, quote: 'x' }, '`a.md` has no line 9'],
    [
      'lines that end before they begin',
      { file: 'a.md', from_line: 3, to_line: 2, quote: 'x' },
      '`to_line` must be at least `from_line`',
    ],
    ['a file that is not there', { file: 'b.md', from_line: 1, quote: 'x' }, '`file` is not a file of the workspace'],
    [
      'a file outside the workspace',
      { file: '../outside/secret.txt', from_line: 1, quote: 'The secret' },
      'path escapes root',
    ],
    ['a link that leads outside', { file: 'link/secret.txt', from_line: 1, quote: 'The secret' }, 'path escapes root'],
    [
      'a path that a row has not',
      { file: 'rows.jsonl', row: 1, path: 'user.age', quote: '5' },
      'has nothing at `user.age`',
    ],
    ['a path that is none', { file: 'rows.jsonl', row: 1, path: 'user..', quote: '5' }, 'cannot be read at character'],
    ['a row that is not JSON', { file: 'rows.jsonl', row: 2, path: 'id', quote: '1' }, 'is not JSON'],
    ['a call that nobody made', { call_id: 'call_9', quote: 'x' }, 'there is no result of a call `call_9`'],
    ['nowhere', { quote: 'x' }, 'is no evidence'],
    ['an empty quotation', { file: 'a.md', from_line: 1, quote: ' ' }, '`quote` must not be empty'],
  ]
  test.each(bad)('SO-12 invalid evidence is rejected, and the problem is named: %s', async (_name, given, problem) => {
    await inWorkspace(async (root) => {
      const right = claiming({ file: 'a.md', from_line: 1, quote: 'First' })
      using model = new ScriptedModel().calls('final_result', claiming(given)).calls('final_result', right)
      const result = await harnessOf({ model, outputType, root }).run('Go.')
      expect([result.output, result.usage.outputRetries]).toEqual([right, 1])
      const told = JSON.stringify(model.heard[1])
      expect(told).toContain('- claims.0.source: ')
      expect(told).toContain(JSON.stringify(problem).slice(1, -1))
      expect(told).not.toContain('The secret is')
    })
  })

  test('SO-05 evidence is explained to the model, and its internal mark is not sent', async () => {
    using model = new ScriptedModel().calls('final_result', { claims: [] })
    await harnessOf({ model, outputType }).run('Go.')
    const sent = JSON.stringify(model.requests[0]?.constants.tools)
    expect(sent).toContain('Evidence: `quote` must be copied word for word')
    expect(sent).not.toContain('x-evidence')
  })

  test('SO-12 evidence is found through references, maps, tuples and alternatives of a JSON Schema', async () => {
    const quoted = {
      type: 'object',
      properties: { call_id: { type: 'string' }, quote: { type: 'string' } },
      ...evidence,
    }
    const document: JsonSchema = {
      type: 'object',
      properties: {
        map: { type: 'object', additionalProperties: { $ref: '#/$defs/quoted' } },
        pair: {
          type: 'array',
          prefixItems: [{ type: 'string' }, { anyOf: [{ type: 'null' }, { $ref: '#/$defs/quoted' }] }],
        },
      },
      $defs: { quoted },
    }
    const bad = { call_id: 'none', quote: 'x' }
    using model = new ScriptedModel()
      .calls('final_result', { map: { a: bad }, pair: ['x', bad] })
      .calls('final_result', { pair: ['x', null] })
    const harness = new Harness({ model, builtinTools: [], outputType: document })
    expect((await harness.run('Go.')).output).toEqual({ pair: ['x', null] })
    const told = JSON.stringify(model.heard[1])
    expect(told).toContain('- map.a: ')
    expect(told).toContain('- pair.1: ')
  })
})

test('a run that was answered by a call continues with a new prompt', async () => {
  using model = new ScriptedModel().calls('final_result', { answer: 'yes' }).calls('final_result', { answer: 'still' })
  const again = defineTool({
    name: 'again',
    description: 'Again.',
    parameters: { type: 'object' },
    handler: () => 'ok',
  })
  const harness = harnessOf({ model, outputType: answer, tools: [again] })
  const { resumeState } = await harness.run('Go.')
  const result = await harness.run('And now?', {
    history: JSON.parse(JSON.stringify(resumeState)) as typeof resumeState,
  })
  expect(result.output).toEqual({ answer: 'still' })
  expect(model.requests[1]?.transcriptLength).toBe(4)
  expect(result.transcript.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'user', 'assistant', 'tool'])
})
