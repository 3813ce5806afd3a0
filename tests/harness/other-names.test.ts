import { describe, expect, test } from 'vitest'
import { defineTool, Harness } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'

describe('names from other libraries get a hint', () => {
  test.each<[string, object, string]>([
    ['system', { system: 'x' }, 'Unknown option of `Harness`: `system`. Use `instructions`.'],
    ['maxSteps', { maxSteps: 5 }, 'Use `limits: { modelRequests }`.'],
    ['maxTokens', { maxTokens: 5 }, 'Use `settings: { maxOutputTokens }`.'],
    ['temperature', { temperature: 0 }, 'Use `settings: { temperature }`.'],
    ['schema', { schema: {} }, 'Use `outputType`.'],
    ['cwd', { cwd: '.' }, 'Use `root`.'],
    ['messages', { messages: [] }, '`run(prompt, { history })`; `fromMessages(messages)` makes one.'],
    ['apiKey', { apiKey: 'sk-1' }, 'option of a model'],
    [
      'tools as an object',
      { tools: { weather: {} } },
      'Give a list, in which each tool, made by `defineTool`, has its',
    ],
    [
      'a model of the AI SDK',
      { model: { specificationVersion: 'v3', provider: 'p', modelId: 'm', doGenerate: () => undefined } },
      'This is a model of the AI SDK: use `fromAiSdk(model)` of `thinharness/providers`.',
    ],
    [
      'a provider without references',
      { model: 'google:gemini-3' },
      'Unknown provider `google` in the model `google:gemini-3`. Use `openrouter:…`, `fromAiSdk(model)`',
    ],
  ])('as an option of `Harness`: %s', (_name, options, hint) => {
    expect(() => new Harness(options)).toThrow(
      expect.objectContaining({ code: 'invalid_options', message: expect.stringContaining(hint) as string }),
    )
  })

  test.each<[string, object, string]>([
    ['system', { system: 'x' }, 'Unknown option of a run: `system`. Use `instructions`.'],
    ['messages', { messages: [] }, 'Use `history`; `fromMessages(messages)` makes one.'],
    ['abortSignal', { abortSignal: null }, 'Use `signal`.'],
    ['outputType', { outputType: {} }, 'Use `outputType` of `Harness`.'],
    ['temperature', { temperature: 1 }, 'Use `settings` of `Harness`.'],
  ])('as an option of a run: %s', async (_name, options, hint) => {
    const harness = new Harness({ model: new ScriptedModel() })
    await expect(harness.run('Hi', options)).rejects.toThrow(hint)
    await expect(harness.resume('run_1', [], options)).rejects.toThrow(
      hint.replace('of a run:', 'of a run that continues:'),
    )
  })

  test.each<[string, string]>([
    ['inputSchema', 'Use `parameters`.'],
    ['execute', 'Use `handler`.'],
    ['needsApproval', 'Use `requiresApproval`.'],
    ['strict', 'Leave it out'],
  ])('as an option of a tool: %s', (name, hint) => {
    const options = { name: 'x', description: '', parameters: { type: 'object' }, handler: () => 1, [name]: true }
    expect(() => defineTool(options)).toThrow(`Unknown option of tool \`x\`: \`${name}\`. ${hint}`)
  })

  test('as a prompt: the messages of a conversation', async () => {
    const harness = new Harness({ model: new ScriptedModel() })
    const messages = [{ role: 'user', content: 'Hi' }]
    await expect(harness.run(messages as never)).rejects.toThrow('as `history`: `fromMessages(messages)` makes one.')
  })

  test('a name that is only misspelled still gets a suggestion', () => {
    expect(() => new Harness({ instuctions: 'x' } as never)).toThrow('Did you mean `instructions`?')
    expect(() => new Harness({ constructor: 'x' } as never)).toThrow('Unknown option of `Harness`: `constructor`.')
  })
})
