import type { CallEvidence } from '../../tools/evidence.js'
import type { ContentPart, ToolEntry } from '../../contracts/entry.js'
import { isObject, parseJson } from '../../util/json.js'
import type { EvidenceSources, Quoted } from './sources.js'

/** What a call of the conversation gave that a quotation is said to be from. */
export function quotedResult({ call_id: callId }: CallEvidence, { transcript }: EvidenceSources): Quoted {
  const entry = transcript.findLast((each): each is ToolEntry => each.role === 'tool' && each.callId === callId)
  if (entry === undefined) return { problem: `there is no result of a call \`${callId.slice(0, 80)}\`` }
  return { text: textOf(entry.content), place: `the result of \`${callId}\`` }
}

function textOf(content: string | readonly ContentPart[]): string {
  if (typeof content === 'string') return resultText(content)
  return content.map((part) => (part.type === 'text' ? resultText(part.text) : '')).join('\n')
}

/** The content of an envelope, and the envelope itself, whose metadata may be quoted too. */
function resultText(text: string): string {
  const parsed = parseJson(text)
  const content = parsed.ok && isObject(parsed.value) ? parsed.value['content'] : undefined
  return typeof content === 'string' ? `${content}\n${text}` : text
}
