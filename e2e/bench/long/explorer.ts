// A strict provider with a window: it answers with calls that read a tree, and writes summaries.
import { scriptedProvider } from 'thinharness/testing'
import type { ScriptedAnswer, ProviderFault, ProviderRequest, Reply, ScriptedProvider } from 'thinharness/testing'
import { callsOf } from './trees.js'
import type { Tree } from './trees.js'

/** The model that writes about a conversation. Any other model explores. */
export const WRITER = 'writer'

/** Characters of a body for one token, as the provider counts. */
const CHARACTERS = 4

export interface Exploration {
  readonly tree: Tree
  /** Tokens of a request that it takes. */
  readonly window: number
  /** Requests with calls; the next one is answered. */
  readonly turns: number
}

/** Each model explores by itself, so that several runs can use the provider one after the other. */
export async function exploringProvider({ tree, window, turns }: Exploration): Promise<ScriptedProvider> {
  const provider = await scriptedProvider({ record: false, chunks: 'whole' })
  const asked = new Map<string, number>()
  return provider.always((request): ScriptedAnswer<ProviderFault> => {
    const tokens = Math.ceil(Number(request.headers['content-length']) / CHARACTERS)
    if (tokens > window) return { fault: 'status', status: 400, message: tooLong(tokens, window) }
    const { model } = request
    if (model === WRITER) return summaryOf(request)
    const turn = asked.get(model) ?? 0
    asked.set(model, turn + 1)
    if (turn >= turns) return 'Done.'
    return { calls: callsOf(tree, turn).map((call, index) => ({ ...call, callId: `call_${turn}_${index}` })) }
  })
}

function tooLong(tokens: number, window: number): string {
  return `prompt is too long: ${tokens} tokens > ${window} maximum`
}

/** Lines of a summary, and characters of a line. */
const LINES = 30
const LONGEST_LINE = 120

/** One line for each of some entries of the part. */
function summaryOf({ messages }: ProviderRequest): Reply {
  const prompt = messages.findLast((message) => message.role === 'user')
  const lines = typeof prompt?.content === 'string' ? prompt.content.split('\n') : []
  const step = Math.max(1, Math.floor(lines.length / LINES))
  const chosen = lines.filter((_line, index) => index % step === 0).slice(0, LINES)
  return { text: chosen.map((line, index) => `${index + 1}. ${line.slice(0, LONGEST_LINE)}`).join('\n') }
}
