import { describe, expect, test } from 'vitest'
import { Harness } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'

describe('values from other libraries get a hint', () => {
  test.each<[string, object, string]>([
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
      { model: 'vertex:gemini-3' },
      'Unknown provider `vertex` in the model `vertex:gemini-3`. Use `openrouter:…`, `fromAiSdk(model)`',
    ],
  ])('as an option of `Harness`: %s', (_name, options, hint) => {
    expect(() => new Harness(options)).toThrow(
      expect.objectContaining({ code: 'invalid_options', message: expect.stringContaining(hint) as string }),
    )
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
