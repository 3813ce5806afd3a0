// How other libraries keep a conversation short, by their documentation: each gets all messages and gives those to send.
import { summaryOf } from './facts.js'
import { tokensOf } from './meter.js'
import type { Meter, Sent } from './meter.js'

export interface Contender {
  readonly title: string
  /** A conversation. `push` takes a new message, `shown` is the next request. */
  readonly open: (meter: Meter) => { readonly push: (message: Sent) => void; readonly shown: () => readonly Sent[] }
}

function lengthOf(messages: readonly Sent[]): number {
  return messages.reduce((sum, { text }) => sum + tokensOf(text), 0)
}

/** Messages that stay as they are. */
const KEPT = 20

interface Summarizing {
  readonly title: string
  readonly window: number
  /** The last tokens that the summarizer reads; null: all. */
  readonly trim: number | null
}

/**
 * LangChain's \`SummarizationMiddleware\`: from three quarters of the window on, one summary replaces all but the last 20
 * messages. The summarizer reads the last \`trimTokensToSummarize\` tokens, 4,000 unless it is changed.
 */
export function summarizing({ title, window, trim }: Summarizing): Contender {
  return {
    title,
    open: (meter) => {
      let messages: Sent[] = []
      let length = 0
      const summarize = (): void => {
        let cut = messages.length - KEPT
        // A call is not separated from its results.
        while (cut > 0 && messages[cut]?.role === 'tool') cut -= 1
        if (cut <= 0) return
        const read = messages
          .slice(0, cut)
          .map(({ text }) => text)
          .join('\n')
        const input = trim === null ? read : read.slice(-trim * 4)
        const text = `Here is a summary of the conversation to date:\n\n${summaryOf(input)}`
        meter.writerInput += tokensOf(input)
        meter.writerOutput += tokensOf(text)
        messages = [{ role: 'user', text }, ...messages.slice(cut)]
        length = lengthOf(messages)
      }
      return {
        push: (message) => {
          messages.push(message)
          length += tokensOf(message.text)
        },
        shown: () => {
          if (length > window * 0.75) summarize()
          return messages
        },
      }
    },
  }
}

/** The AI SDK's \`pruneMessages({ toolCalls: 'before-last-20-messages' })\`, in \`prepareStep\`. */
export const PRUNING: Contender = {
  title: `AI SDK, \`pruneMessages\` before the last ${KEPT}`,
  open: () => {
    const others: Sent[] = []
    let recent: Sent[] = []
    return {
      push: (message) => {
        recent.push(message)
        while (recent.length > KEPT) {
          const [oldest, ...rest] = recent
          if (oldest !== undefined && !isOfTools(oldest)) others.push(oldest)
          recent = rest
        }
      },
      // A result at the start has lost its call.
      shown: () => [...others, ...recent.slice(recent.findIndex(({ role }) => role !== 'tool'))],
    }
  },
}

function isOfTools({ role, text }: Sent): boolean {
  return role === 'tool' || (role === 'assistant' && /^\w+\(\{/.test(text))
}

/** The Responses API's \`truncation: 'auto'\`, as OpenAI Agents passes it on: the oldest items are left out until the rest fits. */
export function truncating(window: number): Contender {
  return {
    title: "OpenAI, `truncation: 'auto'`",
    open: () => {
      let messages: Sent[] = []
      let length = 0
      return {
        push: (message) => {
          messages.push(message)
          length += tokensOf(message.text)
        },
        shown: () => {
          let cut = 0
          for (; length > window || messages[cut]?.role === 'tool'; cut++) length -= tokensOf(messages[cut]?.text ?? '')
          messages = messages.slice(cut)
          return messages
        },
      }
    },
  }
}

/** The cost of a recorded conversation under a contender; \`onReply\` gets the request before each reply. */
export function replayUnder(
  contender: Contender,
  { transcript, meter }: { readonly transcript: readonly Sent[]; readonly meter: Meter },
  onReply: (reply: Sent, shown: readonly Sent[]) => void,
): void {
  const conversation = contender.open(meter)
  for (const message of transcript) {
    if (message.role === 'assistant') {
      const shown = conversation.shown()
      meter.add(shown)
      onReply(message, shown)
    }
    conversation.push(message)
  }
}
