import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { Harness } from 'thinharness'
import type { HarnessOptions } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { eventsOf, harnessOf, tool } from './support.js'
import { temporaryFolder } from '../support/folder.js'

describe('options', () => {
  test.each<[string, object, string]>([
    ['an unknown name', { maxModelRequests: 5 }, 'Unknown option of `Harness`: `maxModelRequests`.'],
    [
      'a misspelt one',
      { instuctions: 'x' },
      'Unknown option of `Harness`: `instuctions`. Did you mean `instructions`?',
    ],
    [
      'an unknown built-in tool',
      { builtinTools: ['reed'] },
      'Unknown built-in tool `reed`. Did you mean `read`? Available: `edit`, `glob`, `jsonl_search`, `list`, `parallel_llm`, `read`, `search`, `write`.',
    ],
    [
      'a tool that is a value',
      { builtinTools: ['bash'] },
      '`bash` is no built-in tool: give `tools` the tool `bash()` of `thinharness/tools`.',
    ],
    ['a built-in tool twice', { builtinTools: ['read', 'read'] }, 'Two tools have the name `read`'],
    [
      'an unknown setting',
      { settings: { temprature: 1 } },
      'Unknown option of `Harness`: `settings.temprature`. Did you mean `temperature`?',
    ],
    [
      'a cap of replies that is none',
      { settings: { maxOutputTokens: 0 } },
      'Expected `settings.maxOutputTokens` of `Harness` to be a whole number from 1 up, got `0`.',
    ],
    [
      'an unknown mode',
      { outputMode: 'json' },
      'Expected `outputMode` of `Harness` to be one of `auto`, `native`, `tool`, `prompted`, `text`, got `json`.',
    ],
    ['a model without a provider', { model: 'gpt-5.5' }, 'Expected a model as `provider:model`'],
    [
      'an unknown provider',
      { model: 'antropic:claude' },
      'Unknown provider `antropic` in the model `antropic:claude`. Did you mean `anthropic`? Known: `anthropic`, `google`, `local`, `openai`, `openrouter`.',
    ],
  ])('HC-46 invalid options are rejected at construction: %s', (_name, options, message) => {
    expect(() => new Harness(options)).toThrow(
      expect.objectContaining({ code: 'invalid_options', message: expect.stringContaining(message) as string }),
    )
  })

  test('HC-46 construction performs no I/O and needs no key', async () => {
    const folder = temporaryFolder()
    expect(() => new Harness({ root: join(folder, 'workspace') })).not.toThrow()
    expect(await readdir(folder)).toEqual([])
  })

  test('the environment names a model only if the options name none', async () => {
    const before = process.env['THINHARNESS_MODEL']
    try {
      process.env['THINHARNESS_MODEL'] = 'local:from-environment@http://127.0.0.1:9/v1'
      using model = new ScriptedModel().says('Done.')
      const events = await eventsOf(harnessOf({ model }).stream('Go.'))
      expect(events[0]).toMatchObject({ provider: 'scripted', model: 'scripted-1' })
      const harness = harnessOf({})
      const started = await new Promise((resolve) => {
        const stream = harness.stream('Go.')
        void stream[Symbol.asyncIterator]()
          .next()
          .then(({ value }) => resolve(value))
      })
      expect(started).toMatchObject({ kind: 'run_started', model: 'from-environment' })
      await harness.close()
    } finally {
      if (before === undefined) delete process.env['THINHARNESS_MODEL']
      else process.env['THINHARNESS_MODEL'] = before
    }
  })
})

describe('built-in tools', () => {
  async function offered(options: HarnessOptions): Promise<{ names: string[]; instructions: string }> {
    const folder = temporaryFolder()
    using model = new ScriptedModel().says('Done.')
    await new Harness({ root: folder, ...options, model }).run('Go.')
    const { tools, instructions } = model.requests[0]!.constants
    return { names: tools.map(({ name }) => name), instructions: instructions.replaceAll(folder, 'ROOT') }
  }

  test('HC-19 HC-20 HC-24 the six file tools are the default, in a fixed order; their instructions follow the prompt and the root line', async () => {
    const { names, instructions } = await offered({})
    expect(names).toEqual(['read', 'write', 'edit', 'search', 'list', 'glob'])
    expect(instructions).toMatch(/^You are an agent that works on the files of one workspace\.\n/)
    expect(instructions).toContain('\n\nWorkspace root: ROOT')
  })

  test('HC-18 an explicit list selects exactly those tools, in the given order, before the tools of the host', async () => {
    const { names } = await offered({ builtinTools: ['search', 'jsonl_search', 'read'], tools: [tool('mine')] })
    expect(names).toEqual(['search', 'jsonl_search', 'read', 'mine'])
  })

  test('HC-18 an empty list selects none, and then the prompt does not mention a workspace', async () => {
    using model = new ScriptedModel().says('Done.')
    await new Harness({ builtinTools: [], model }).run('Go.')
    expect(model.requests[0]?.constants).toMatchObject({ tools: [], instructions: '' })
  })
})

describe('file tools by default', () => {
  const toolsOf = async (options: HarnessOptions) => {
    await using harness = new Harness({ model: new ScriptedModel(), ...options })
    const description = await harness.describe()
    return { names: description.tools.map(({ name }) => name), text: String(description) }
  }

  test('a harness without `root` and `builtinTools` has no file tools', async () => {
    const { names, text } = await toolsOf({})
    expect(names).toEqual([])
    expect(text).toContain('\ntools     none')
  })

  test('a `root` brings the six file tools, and `builtinTools` names them without one', async () => {
    const six = ['read', 'write', 'edit', 'search', 'list', 'glob']
    expect((await toolsOf({ root: temporaryFolder() })).names).toEqual(six)
    expect((await toolsOf({ builtinTools: ['read'] })).names).toEqual(['read'])
    expect((await toolsOf({ root: temporaryFolder(), builtinTools: [] })).names).toEqual([])
  })
})
