import { resultForModel } from '../../contracts/entry.js'
import type { ToolEntry, TranscriptEntry } from '../../contracts/entry.js'
import type { JsonObject } from '../../util/json.js'
import { assistantMessage } from './assistant.js'
import { omission } from '../wire/content.js'
import { textPart, userContent, wirePart } from './content.js'
import type { ContentRules } from './content.js'
import { wireCallId } from './dialect.js'

/** Messages for entries. The results of a batch stay together; their images and files follow after the last one. */
export function encodeEntries(entries: readonly TranscriptEntry[], rules: ContentRules): JsonObject[] {
  const messages: JsonObject[] = []
  let shown: JsonObject[] = []
  /** True if the calls of the current results are from a reply of this provider. */
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
  /** Images and files of the result, which a tool message cannot contain, after a text that names the call. */
  readonly shown: readonly JsonObject[]
}

function encodeResult(entry: ToolEntry, id: string, rules: ContentRules): EncodedResult {
  const content = resultForModel(entry, 'prefix')
  const message = (text: string): JsonObject => ({ role: 'tool', tool_call_id: id, content: text })
  if (typeof content === 'string') return { message: message(content), shown: [] }
  const texts: string[] = []
  const media: JsonObject[] = []
  for (const part of content) {
    const form = wirePart(part, rules)
    if (form.part === null) texts.push(omission(form.problem))
    else if (part.type === 'text') texts.push(part.text)
    else media.push(form.part)
  }
  if (media.length === 0) return { message: message(texts.join('\n\n')), shown: [] }
  const origin = textPart(`From the result of the call \`${id}\` of \`${entry.name}\`:`)
  return { message: message(texts.join('\n\n')), shown: [origin, ...media] }
}
