import type { ModelToolCall, ModelTurn } from '../../contracts/model.js'
import type { ReceivedTurn } from '../../output/resolve.js'
import { previewArguments } from '../../tools/boundary/arguments.js'
import type { CheckedArguments } from '../../tools/boundary/arguments.js'
import type { ToolSpec } from '../../tools/spec.js'
import { toolCallsOf } from '../../contracts/entry.js'
import type { AssistantPart, ToolCallPart, TranscriptEntry } from '../../contracts/entry.js'
import { checkCall } from '../calls/admission.js'

export interface NormalizedTurn extends ReceivedTurn {
  /** The arguments of calls to tools that there are, checked, by call id. */
  readonly checked: ReadonlyMap<string, CheckedArguments>
}

/**
 * A reply as it is recorded: call ids are unique in the transcript, and arguments are what the tool boundary made
 * of them. `calls` are those of the entry, by these ids, with the arguments as they came.
 */
export async function normalizeTurn(
  turn: ModelTurn,
  tools: ReadonlyMap<string, ToolSpec>,
  ids: CallIds,
): Promise<NormalizedTurn> {
  const checked = new Map<string, CheckedArguments>()
  const parts: AssistantPart[] = []
  const calls: ModelToolCall[] = []
  for (const part of turn.entry.parts) {
    const recorded = part.type === 'tool_call' ? await normalizePart(part, turn, { tools, ids, checked, calls }) : part
    parts.push(copyOf(recorded))
  }
  return { turn: { ...turn, entry: { ...turn.entry, parts, usage: copyOf(turn.entry.usage) } }, calls, checked }
}

/** The run freezes its entries, and the model's own objects stay its own. A spread copy would be slower to freeze. */
function copyOf<T extends object>(value: T): T {
  return Object.assign({}, value)
}

interface Normalizing {
  readonly tools: ReadonlyMap<string, ToolSpec>
  readonly ids: CallIds
  readonly checked: Map<string, CheckedArguments>
  readonly calls: ModelToolCall[]
}

async function normalizePart<Part extends ToolCallPart>(
  part: Part,
  turn: ModelTurn,
  { tools, ids, checked, calls }: Normalizing,
): Promise<Part> {
  const callId = ids.claim(part.callId)
  calls.push({ callId, name: part.name, arguments: part.arguments })
  const spec = tools.get(part.name)
  const result = spec === undefined ? undefined : await checkCall(spec, part.arguments, turn.entry.finishReason)
  if (result !== undefined) checked.set(callId, result)
  const text = result?.text ?? previewArguments(part.arguments)
  return callId === part.callId && text === part.arguments ? part : { ...part, callId, arguments: text }
}

/** The call ids of a transcript: each is given out once. */
export class CallIds {
  readonly #used: Set<string>

  constructor(transcript: readonly TranscriptEntry[]) {
    const calls = transcript.flatMap((entry) => (entry.role === 'assistant' ? toolCallsOf(entry.parts) : []))
    this.#used = new Set(calls.map((call) => call.callId))
  }

  /** `wanted`, or what is made of it when it is empty, taken, or no safe key. */
  claim(wanted: string): string {
    const base = wanted === '' || wanted === '__proto__' ? 'call' : wanted
    let id = base
    for (let copy = 2; this.#used.has(id) || id === 'call'; copy++) id = `${base}_${copy}`
    this.#used.add(id)
    return id
  }
}
