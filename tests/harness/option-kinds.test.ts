import { Harness, defineTool } from 'thinharness'
import type { HarnessOptions, RunOptions } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { expect, test } from 'vitest'
import { z } from 'zod'

const refused = (message: string): unknown => expect.objectContaining({ code: 'invalid_options', message })

test.each<[string, unknown, string]>([
  ['a text', 'openai:gpt-5.5', 'Expected the options of `Harness` to be an object, got `openai:gpt-5.5`.'],
  ['nothing', null, 'Expected the options of `Harness` to be an object, got `null`.'],
  ['a root that is no text', { root: 5 }, 'Expected `root` of `Harness` to be a string, got `5`.'],
  [
    'a list of instructions',
    { instructions: ['Be kind.'] },
    'Expected `instructions` of `Harness` to be a string, got a list.',
  ],
  [
    'one tool',
    { tools: {} },
    'Expected `tools` of `Harness` to be a list of tools, got an object. Give a list, in which each tool, made by `defineTool`, has its `name`.',
  ],
  [
    'a function as a tool',
    { tools: [() => 1] },
    'Expected `tools[0]` of `Harness` to be a tool, made by `defineTool`, got a function.',
  ],
  ['one name', { builtinTools: 'read' }, 'Expected `builtinTools` of `Harness` to be a list of names, got `read`.'],
  ['one hook', { hooks: {} }, 'Expected `hooks` of `Harness` to be a list of hooks, got an object.'],
  [
    'the folder of a log',
    { log: './runs' },
    "Expected `log` of `Harness` to be a log, such as `fileLog('./runs')`, got `./runs`.",
  ],
  ['limits that are a number', { limits: 5 }, 'Expected `limits` of `Harness` to be an object, got `5`.'],
  [
    'an answer that is no schema',
    { outputType: { answer: 'string' } },
    'Expected `outputType` to be a schema, got an object without a keyword of JSON Schema.',
  ],
])('an option of the wrong type is rejected at once: %s', (_what, options, message) => {
  expect(() => new Harness(options as HarnessOptions)).toThrow(refused(message))
})

test.each<[string, unknown, string]>([
  ['a text', 'quickly', 'Expected the options of a run to be an object, got `quickly`.'],
  [
    'a controller for its signal',
    { signal: new AbortController() },
    'Expected `signal` of a run to be an `AbortSignal`, got an object.',
  ],
  ['a text for a flag', { deltas: 'true' }, 'Expected `deltas` of a run to be a boolean, got the string `true`.'],
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
