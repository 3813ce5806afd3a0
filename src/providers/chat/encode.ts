import type { ContentPart, ToolEntry, TranscriptEntry } from '../../contracts/entry.js'
import type { JsonObject } from '../../util/json.js'
import { assistantMessage } from './assistant.js'
import { wireCallId } from './call-ids.js'
import { textPart, userContent, wirePart } from './content.js'
import type { ContentRules } from './content.js'

/** Messages for entries. The results of a batch stand together; what they show besides text follows behind the last. */
export function encodeEntries(entries: readonly TranscriptEntry[], rules: ContentRules): JsonObject[] {
  const messages: JsonObject[] = []
  let shown: JsonObject[] = []
  /** Whether the reply whose calls are being answered is of this provider. */
  let isOwn = false
  for (const [index, entry] of entries.entries()) {
    switch (entry.role) {
      case 'user':
        messages.push({ role: 'user', content: userContent(entry.content, rules) })
        break
      case 'assistant':
        isOwn = entry.provider === rules.provider
        messages.push(assistantMessage(entry, rules.provider, rules.dialect))
        break
      case 'tool': {
        const result = encodeResult(entry, wireCallId(entry.callId, rules.dialect.callIds, isOwn), rules)
        messages.push(result.message)
        shown.push(...result.shown)
        if (shown.length === 0 || entries[index + 1]?.role === 'tool') break
        messages.push({ role: 'user', content: shown })
        shown = []
      }
    }
  }
  return messages
}

interface EncodedResult {
  readonly message: JsonObject
  /** Images and files of the result, which a tool message cannot hold, with a word on where they come from. */
  readonly shown: readonly JsonObject[]
}

function encodeResult({ name, content }: ToolEntry, id: string, rules: ContentRules): EncodedResult {
  const message = (text: string): JsonObject => ({ role: 'tool', tool_call_id: id, content: text })
  if (typeof content === 'string') return { message: message(content), shown: [] }
  const texts: string[] = []
  const media: JsonObject[] = []
  for (const part of content) {
    const form = wirePart(part, rules)
    if (form.part === null) texts.push(`[Left out of this result. ${form.problem}]`)
    else if (isText(part)) texts.push(part.text)
    else media.push(form.part)
  }
  if (media.length === 0) return { message: message(texts.join('\n\n')), shown: [] }
  const origin = textPart(`From the result of the call \`${id}\` of \`${name}\`:`)
  return { message: message(texts.join('\n\n')), shown: [origin, ...media] }
}

function isText(part: ContentPart): part is ContentPart & { readonly type: 'text' } {
  return part.type === 'text'
}
