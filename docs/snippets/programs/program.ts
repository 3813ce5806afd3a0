import type { JsonValue, Model, TranscriptEntry } from 'thinharness'

export type Script = (call: (name: string, args: object) => Promise<JsonValue>) => Promise<JsonValue>

/** A program as a model: at each turn it runs from its beginning, with what its calls have returned so far. */
export function program(script: Script): Model {
  return {
    provider: 'example',
    id: 'program',
    capabilities: {},
    computed: true,
    openSession: () => ({
      turn: async (view, _constants, { values = new Map<string, JsonValue>() }) => ({
        entry: { role: 'assistant', ...(await nextStep(script, view, values)), ...NOTHING_USED },
      }),
    }),
  }
}

type Step =
  | { parts: { type: 'tool_call'; callId: string; name: string; arguments: string }[]; finishReason: 'tool_calls' }
  | { parts: { type: 'text'; text: string }[]; finishReason: 'stop' }

/** The first call that has no result yet, or the end. */
function nextStep(
  script: Script,
  view: readonly TranscriptEntry[],
  values: ReadonlyMap<string, JsonValue>,
): Promise<Step> {
  const results = new Map(view.flatMap((entry) => (entry.role === 'tool' ? [[entry.callId, entry]] : [])))
  return new Promise((resolve, reject) => {
    let count = 0
    const call = (name: string, args: object): Promise<JsonValue> => {
      const callId = `step_${(count += 1)}`
      const value = values.get(callId)
      if (value !== undefined) return Promise.resolve(value)
      const failed = results.get(callId)
      if (failed !== undefined) return Promise.reject(new Error(JSON.stringify(failed.content)))
      const made = { type: 'tool_call', callId, name, arguments: JSON.stringify(args) } as const
      resolve({ parts: [made], finishReason: 'tool_calls' })
      // It is awaited in a later turn.
      return new Promise(() => undefined)
    }
    script(call).then(
      (answer) => resolve({ parts: [{ type: 'text', text: JSON.stringify(answer) }], finishReason: 'stop' }),
      reject,
    )
  })
}

const NOTHING_USED = {
  provider: 'example',
  model: 'program',
  usage: {
    ...{ inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 },
    reasoningTokens: 0,
  },
}
