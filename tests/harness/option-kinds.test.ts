import { Harness, defineTool } from 'thinharness'
import type { HarnessOptions, RunOptions } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { expect, test } from 'vitest'
import { z } from 'zod'

const refused = (message: string): unknown => expect.objectContaining({ code: 'invalid_options', message })

test.each<[string, unknown, string]>([
  ['a text', 'openai:gpt-5.5', 'Expected the options of `Harness` to be an object, got a value of type string.'],
  ['nothing', null, 'Expected the options of `Harness` to be an object, got null.'],
  ['a root that is no text', { root: 5 }, 'Expected `root` to be a text, got a value of type number.'],
  ['a list of instructions', { instructions: ['Be kind.'] }, 'Expected `instructions` to be a text, got a list.'],
  [
    'one tool',
    { tools: {} },
    'Expected `tools` to be a list of tools, made by `defineTool`, got a value of type object.',
  ],
  [
    'a function as a tool',
    { tools: [() => 1] },
    'Expected `tools` to be a list of tools, made by `defineTool`, got one with something else in it.',
  ],
  ['one name', { builtinTools: 'read' }, 'Expected `builtinTools` to be a list of names, got a value of type string.'],
  ['one hook', { hooks: {} }, 'Expected `hooks` to be a list of hooks, got a value of type object.'],
  [
    'the folder of a log',
    { log: './runs' },
    "Expected `log` to be a log, such as `fileLog('./runs')`, got a value of type string.",
  ],
  ['limits that are a number', { limits: 5 }, 'Expected the limits to be an object, got a value of type number.'],
  [
    'an answer that is no schema',
    { outputType: { answer: 'string' } },
    'Expected `outputType` to be a schema, got an object without a keyword of JSON Schema.',
  ],
])('an option of the wrong type is rejected at once: %s', (_what, options, message) => {
  expect(() => new Harness(options as HarnessOptions)).toThrow(refused(message))
})

test.each<[string, unknown, string]>([
  ['a text', 'quickly', 'Expected the options of a run to be an object, got a value of type string.'],
  [
    'a controller for its signal',
    { signal: new AbortController() },
    'Expected `signal` to be an `AbortSignal`, got a value of type object.',
  ],
  ['a text for a flag', { deltas: 'true' }, 'Expected `deltas` to be a boolean, got a value of type string.'],
])('a run option of the wrong type is rejected before the run starts: %s', async (_what, options, message) => {
  await using harness = new Harness({ model: new ScriptedModel(), builtinTools: [] })
  await expect(harness.run('Go.', options as RunOptions)).rejects.toEqual(refused(message))
})

test.each<[string, object, string]>([
  ['fields of zod', { id: z.string() }, ' Put the fields into one: `z.object({ … })`.'],
  ['fields in words', { id: 'string' }, ''],
])('parameters that are only a list of fields are rejected: %s', (_what, parameters, hint) => {
  const define = (): unknown =>
    defineTool({ name: 'find', description: 'Finds.', parameters: { ...parameters }, handler: () => 1 })
  const message = `Expected \`parameters\` of tool \`find\` to be a schema, got an object without a keyword of JSON Schema.${hint}`
  expect(define).toThrow(refused(message))
})

test('no previous conversation is a new one', async () => {
  using model = new ScriptedModel().says('Hello.')
  await using harness = new Harness({ model, builtinTools: [] })
  expect((await harness.run('Hi.', { history: null })).text).toBe('Hello.')
})
