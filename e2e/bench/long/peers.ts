// Compactions of other libraries, as they are published: the AI SDK's `pruneMessages` (`ai7` of this repository), and LangChain's
// `summarizationMiddleware`, which is installed into a folder.
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pruneMessages } from 'ai7'
import type { ModelMessage } from 'ai7'
import { textOf, toolCallsOf } from 'thinharness'
import type { TranscriptEntry } from 'thinharness'
import type { Contender } from './contenders.js'
import { summaryOf } from './facts.js'
import { sentOf, tokensOf } from './meter.js'
import type { Meter, Sent } from './meter.js'

/** Messages that stay as they are. */
const KEPT = 20

/** The AI SDK's `pruneMessages`, called in `prepareStep`. */
export const PRUNING: Contender = {
  title: `AI SDK, \`pruneMessages\` before the last ${KEPT}`,
  open: () => {
    const messages: ModelMessage[] = []
    const sent = new WeakMap<object, Sent>()
    return {
      push: (entry) => {
        messages.push(messageOf(entry))
      },
      shown: () =>
        pruneMessages({ messages, toolCalls: `before-last-${KEPT}-messages` }).map((each) => sentIn(each, sent)),
    }
  },
}

function messageOf(entry: TranscriptEntry): ModelMessage {
  const { role, text } = sentOf(entry)
  if (role === 'user') return { role, content: text }
  if (entry.role === 'tool') {
    const { callId: toolCallId, name: toolName } = entry
    return {
      role: 'tool',
      content: [{ type: 'tool-result', toolCallId, toolName, output: { type: 'text', value: text } }],
    }
  }
  if (entry.role !== 'assistant') throw new TypeError('Expected an entry of a user, a model or a tool.')
  const spoken = textOf(entry.parts)
  return {
    role: 'assistant',
    content: [
      ...(spoken === '' ? [] : [{ type: 'text', text: spoken } as const]),
      ...toolCallsOf(entry.parts).map(({ callId, name, arguments: input }) => {
        return { type: 'tool-call', toolCallId: callId, toolName: name, input } as const
      }),
    ],
  }
}

/** The same object for the same message, so that requests can be compared quickly. */
function sentIn(message: ModelMessage, sent: WeakMap<object, Sent>): Sent {
  const known = sent.get(message)
  if (known !== undefined) return known
  const { role, content } = message
  const text = typeof content === 'string' ? content : content.map(textIn).join('\n')
  const made: Sent = { role: role === 'system' ? 'user' : role, text }
  sent.set(message, made)
  return made
}

function textIn(part: Exclude<ModelMessage['content'], string>[number]): string {
  if (part.type === 'text') return part.text
  if (part.type === 'tool-call') return `${part.toolName}(${String(part.input)})`
  return part.type === 'tool-result' && part.output.type === 'text' ? part.output.value : ''
}

/** A message of LangChain, as far as it is used here. */
interface ChainMessage {
  readonly type: string
  readonly text: string
}

type Constructor = new (fields: object) => ChainMessage

interface Chain {
  readonly summarizationMiddleware: (options: object) => { readonly beforeModel: BeforeModel }
  readonly HumanMessage: Constructor
  readonly AIMessage: Constructor
  readonly ToolMessage: Constructor
}

type BeforeModel = (
  state: { readonly messages: readonly ChainMessage[] },
  runtime: { readonly context: object },
) => Promise<{ readonly messages: readonly ChainMessage[] } | undefined>

interface Summarizing {
  readonly title: string
  readonly window: number
  /** The last tokens that the summarizer reads; null: the default of the middleware. */
  readonly trim: number | null
  /** Where the packages are, or are installed. */
  readonly folder: string
}

/** LangChain's `summarizationMiddleware`, from three quarters of the window on. Its model writes as well as ours does. */
export function summarizing({ title, window, trim, folder }: Summarizing): Contender {
  const { summarizationMiddleware, HumanMessage, AIMessage, ToolMessage } = chainIn(folder)
  const lengthOf = (messages: readonly ChainMessage[]): number =>
    messages.reduce((sum, message) => sum + tokensOf(message.text), 0)
  const chainMessageOf = (entry: TranscriptEntry): ChainMessage => {
    const content = sentOf(entry).text
    if (entry.role === 'tool') return new ToolMessage({ content, tool_call_id: entry.callId, name: entry.name })
    if (entry.role !== 'assistant') return new HumanMessage({ content })
    const calls = toolCallsOf(entry.parts).map(({ callId: id, name, arguments: args }) => {
      return { type: 'tool_call', id, name, args: JSON.parse(args) as object }
    })
    return new AIMessage({ content, tool_calls: calls })
  }
  return {
    title,
    open: (meter) => {
      const { beforeModel } = summarizationMiddleware({
        model: writerOf(meter),
        trigger: { tokens: Math.floor(window * 0.75) },
        tokenCounter: lengthOf,
        ...(trim !== null && { trimTokensToSummarize: trim }),
      })
      const sent = new WeakMap<ChainMessage, Sent>()
      let messages: readonly ChainMessage[] = []
      return {
        push: (entry) => {
          messages = [...messages, chainMessageOf(entry)]
        },
        shown: async () => {
          const changed = await beforeModel({ messages }, { context: {} })
          // The first one removes all messages.
          if (changed !== undefined) messages = changed.messages.slice(1)
          return messages.map((message) => {
            const known = sent.get(message) ?? { role: roleOf(message), text: message.text }
            sent.set(message, known)
            return known
          })
        },
      }
    },
  }
}

function roleOf({ type }: ChainMessage): Sent['role'] {
  if (type === 'tool') return 'tool'
  return type === 'ai' ? 'assistant' : 'user'
}

function writerOf(meter: Meter): object {
  return {
    invoke: (prompt: string) => {
      const content = summaryOf(prompt)
      meter.writerInput += tokensOf(prompt)
      meter.writerOutput += tokensOf(content)
      return Promise.resolve({ content })
    },
  }
}

function chainIn(folder: string): Chain {
  mkdirSync(folder, { recursive: true })
  if (!existsSync(join(folder, 'node_modules', 'langchain'))) {
    writeFileSync(join(folder, 'package.json'), '{ "private": true }')
    const args = ['install', '--no-audit', '--no-fund', '--ignore-scripts', 'langchain@1', '@langchain/core@1']
    execFileSync('npm', args, { cwd: folder, stdio: 'ignore' })
  }
  const load = createRequire(join(folder, 'package.json'))
  return { ...(load('langchain') as object), ...(load('@langchain/core/messages') as object) } as Chain
}
