import type { ToolEntry, TranscriptEntry } from '../../contracts/entry.js'
import { assistantParts } from './assistant.js'
import type { ReplayRules } from './assistant.js'
import { userParts } from './content.js'
import type { PromptMessage, PromptPart } from './wire.js'
import { resultMessages } from './results.js'
import type { ResultRules } from './results.js'

export type EncodeRules = ReplayRules & ResultRules

/**
 * The messages of entries that join the conversation together: never a part of a tool batch. So the messages of two
 * such groups are those of both together. What holds nothing is left out: empty messages are refused.
 */
export function encodeEntries(entries: readonly TranscriptEntry[], rules: EncodeRules): PromptMessage[] {
  const messages: PromptMessage[] = []
  let batch: ToolEntry[] = []
  for (const [index, entry] of entries.entries()) {
    switch (entry.role) {
      case 'user':
        messages.push(...message('user', userParts(entry.content, rules)))
        break
      case 'assistant':
        messages.push(...message('assistant', assistantParts(entry, rules)))
        break
      case 'tool':
        batch.push(entry)
        if (entries[index + 1]?.role === 'tool') break
        messages.push(...resultMessages(batch, rules))
        batch = []
    }
  }
  return messages
}

function message(role: 'user' | 'assistant', content: readonly PromptPart[]): PromptMessage[] {
  return content.length === 0 ? [] : [{ role, content }]
}
