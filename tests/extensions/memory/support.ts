import { onTestFinished } from 'vitest'
import type { JsonObject, LogStore, ToolSpec } from 'thinharness'
import { createMemory } from 'thinharness/memory'
import type { Embed, Memory, MemoryOptions } from 'thinharness/memory'
import { ScriptedModel } from 'thinharness/testing'
import { eventsOf, harnessOf, ofKind } from '../../harness/support.js'

const MEANINGS = ['dog puppy hound', 'car vehicle auto', 'tea drink beverage', 'house home flat', 'money cash coins']

/** Words of one meaning have one place in a vector. */
export const embed: Embed = (texts) =>
  Promise.resolve(
    texts.map((text) =>
      Array.from({ length: 12 }, (_none, place) => {
        const meant = MEANINGS[place]?.split(' ').some((word) => text.toLowerCase().includes(word)) ?? false
        return meant ? 1 : -0.01
      }),
    ),
  )

/** A memory that is closed after the test. */
export function memoryOf(options: MemoryOptions): Memory {
  const memory = createMemory(options)
  onTestFinished(() => memory.close())
  return memory
}

interface Said {
  readonly runId?: string
  readonly metadata?: JsonObject
  readonly reply?: string
  readonly tools?: readonly ToolSpec[]
  readonly calls?: readonly string[]
  readonly history?: { readonly runId: string }
}

/** A run without the memory, in which its tools are called before the reply. */
export async function say(
  log: LogStore,
  prompt: string,
  { reply = 'Good.', calls = [], tools = [], ...options }: Said = {},
): Promise<void> {
  const model = new ScriptedModel()
  for (const name of calls) model.calls(name)
  await harnessOf({ model: model.says(reply), log, tools }).run(prompt, options)
}

interface Called {
  readonly ok: boolean
  readonly content: string
  readonly source: unknown
}

/** Calls tools of the memory in a run, one after the other, and gives their results. */
export async function callMemory(
  {
    log,
    memory,
    metadata = {},
    prompt = 'Go.',
  }: { log: LogStore; memory: Memory; metadata?: JsonObject; prompt?: string },
  ...calls: readonly (readonly [string, JsonObject])[]
): Promise<readonly Called[]> {
  const model = new ScriptedModel()
  for (const [name, args] of calls) model.calls(name, args)
  const stream = harnessOf({ model: model.says('Done.'), log, use: [memory] }).stream(prompt, { metadata })
  return ofKind(await eventsOf(stream), 'tool_call_completed').map(({ ok, output, source }) => {
    const { content } = JSON.parse(output) as { content: string }
    return { ok, content, source }
  })
}

/** The texts that a search finds. */
export async function recalled(
  where: { log: LogStore; memory: Memory; metadata?: JsonObject },
  query: string,
  args: JsonObject = {},
): Promise<string> {
  const [found] = await callMemory(where, ['recall_memory', { query, ...args }])
  return found?.content ?? ''
}
