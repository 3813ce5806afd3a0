import { NO_TOKENS } from '#contracts/entry.js'
import type { JsonValue, Model, ToolSpec, TranscriptEntry } from 'thinharness'
import { tool } from '../../harness/support.js'

export const NO_REPORT = {
  ...NO_TOKENS,
  inputTokens: null,
  outputTokens: null,
  cacheReadTokens: null,
  cacheWriteTokens: null,
  reasoningTokens: null,
}

export type Call = (name: string, args?: object) => Promise<JsonValue>
export type Script = (call: Call) => Promise<unknown>

interface Made {
  readonly callId: string
  readonly name: string
  readonly args: object
}

/** A program as a model: it runs from its beginning at each turn, with the values that its calls have returned so far. */
export function program(script: Script, seen: { turns?: number } = {}): Model {
  return {
    provider: 'test',
    id: 'program',
    capabilities: {},
    computed: true,
    openSession: () => ({
      turn: async (view, _constants, { values = new Map<string, JsonValue>() }) => {
        seen.turns = (seen.turns ?? 0) + 1
        const failures = new Map(view.flatMap(failureIn))
        const next: Made[] = []
        let count = 0
        const call: Call = (name, args = {}) => {
          const callId = `step_${(count += 1)}`
          const value = values.get(callId)
          if (value !== undefined) return Promise.resolve(value)
          const failure = failures.get(callId)
          if (failure !== undefined) return Promise.reject(new Error(failure))
          next.push({ callId, name, args })
          return new Promise(() => undefined)
        }
        const ended = script(call).then((answer) => ({ answer }))
        // Everything that can happen without an answer has happened.
        const waiting = new Promise<null>((resolve) => setImmediate(() => resolve(null)))
        const found = await Promise.race([ended, waiting])
        const parts =
          found === null
            ? next.map(({ callId, name, args }) => ({
                type: 'tool_call' as const,
                callId,
                name,
                arguments: JSON.stringify(args),
              }))
            : [{ type: 'text' as const, text: JSON.stringify(found.answer) }]
        return {
          entry: {
            role: 'assistant',
            provider: 'test',
            model: 'program',
            parts,
            finishReason: found === null ? 'tool_calls' : 'stop',
            usage: { ...NO_REPORT, inputTokens: 1_000_000, outputTokens: 1_000_000 },
          },
        }
      },
    }),
  }
}

function failureIn(entry: TranscriptEntry): readonly (readonly [string, string])[] {
  if (entry.role !== 'tool' || !entry.isError) return []
  const text = typeof entry.content === 'string' ? entry.content : JSON.stringify(entry.content)
  return [[entry.callId, (JSON.parse(text) as { content: string }).content]]
}

/** A tool that runs a script as a program of its run. */
export function runScript(script: Script, name = 'run_script', seen: { turns?: number } = {}): ToolSpec {
  return tool(
    name,
    async (_, { spawn }) =>
      (await spawn({ prompt: 'Run it.', as: 'self', model: program(script, seen), withoutTools: [name] }).result).text,
    { onUnknownOutcome: 'retry' },
  )
}
