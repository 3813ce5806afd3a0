// How others keep a conversation short: each gets all entries and gives the messages to send.
import type { TranscriptEntry } from 'thinharness'
import { sentOf, tokensOf } from './meter.js'
import type { Meter, Sent } from './meter.js'

export interface Contender {
  readonly title: string
  /** A conversation. `push` takes a new entry, `shown` is the next request. */
  readonly open: (meter: Meter) => {
    readonly push: (entry: TranscriptEntry) => void
    readonly shown: () => readonly Sent[] | Promise<readonly Sent[]>
  }
}

/** OpenAI's \`truncation: 'auto'\`, by its documentation, as it is a part of the service: the oldest items are left out until the rest fits. */
export function truncating(window: number): Contender {
  return {
    title: "OpenAI, `truncation: 'auto'`",
    open: () => {
      let messages: Sent[] = []
      let length = 0
      return {
        push: (entry) => {
          const message = sentOf(entry)
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
export async function replayUnder(
  contender: Contender,
  { transcript, meter }: { readonly transcript: readonly TranscriptEntry[]; readonly meter: Meter },
  onReply: (shown: readonly Sent[]) => void,
): Promise<void> {
  const conversation = contender.open(meter)
  for (const entry of transcript) {
    if (entry.role === 'assistant') {
      const shown = await conversation.shown()
      meter.add(shown)
      onReply(shown)
    }
    conversation.push(entry)
  }
}
