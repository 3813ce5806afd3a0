import { resultForModel } from '../../contracts/entry.js'
import type { ToolEntry, TranscriptEntry } from '../../contracts/entry.js'
import type { JsonObject } from '../../util/json.js'
import { acceptedName } from '../wire/calls.js'
import { hasContent, omission } from '../wire/content.js'
import { assistantParts } from './assistant.js'
import type { ReplayRules } from './assistant.js'
import { filePart, formOf, textPart, userParts } from './content.js'
import type { ContentRules } from './content.js'
import type { PromptFile } from './language-model.js'
import { promptCallId } from './traits.js'

export type EncodeRules = ReplayRules & ContentRules

/**
 * The messages of entries. The results of a batch are one message, as most APIs require; files that the provider does
 * not support within a result follow in a message of their own. Empty messages are omitted, since APIs reject them.
 */
export function encodeEntries(entries: readonly TranscriptEntry[], rules: EncodeRules): JsonObject[] {
  const messages: JsonObject[] = []
  let results: JsonObject[] = []
  let shown: JsonObject[] = []
  for (const [index, entry] of entries.entries()) {
    if (entry.role !== 'tool') {
      const content = entry.role === 'user' ? userParts(entry.content, rules) : assistantParts(entry, rules)
      if (content.length > 0) messages.push({ role: entry.role, content })
      continue
    }
    const result = encodeResult(entry, rules)
    results.push(result.part)
    shown.push(...result.shown)
    if (entries[index + 1]?.role === 'tool') continue
    messages.push({ role: 'tool', content: results })
    if (shown.length > 0) messages.push({ role: 'user', content: shown })
    results = []
    shown = []
  }
  return messages
}

interface EncodedResult {
  readonly part: JsonObject
  /** Files of the result that the provider does not support within it, after a text that names the call. */
  readonly shown: readonly JsonObject[]
}

function encodeResult(entry: ToolEntry, rules: EncodeRules): EncodedResult {
  const toolCallId = promptCallId(entry.callId, rules.traits)
  const toolName = acceptedName(entry.name)
  const { output, files } = outputOf(entry, rules)
  const origin = textPart(`From the result of the call \`${toolCallId}\` of \`${toolName}\`:`)
  const shown = files.map((file) => filePart(file, rules.version))
  return {
    part: { type: 'tool-result', toolCallId, toolName, output },
    shown: shown.length > 0 ? [origin, ...shown] : [],
  }
}

interface Output {
  readonly output: JsonObject
  /** Files that are not within the output. */
  readonly files: readonly PromptFile[]
}

/** A single text unless the result contains a file: in a list of parts, the specification has no mark for an error. */
function outputOf(entry: ToolEntry, rules: EncodeRules): Output {
  const { traits, version } = rules
  const isFlagged = traits.errorFlag === true && typeof entry.content === 'string'
  const content = resultForModel(entry, isFlagged ? 'flag' : 'prefix')
  const type = entry.isError && traits.plainErrors !== true ? 'error-text' : 'text'
  if (typeof content === 'string') return { output: { type, value: content }, files: [] }
  const texts: string[] = []
  const inside: JsonObject[] = []
  const files: PromptFile[] = []
  for (const part of content.filter(hasContent)) {
    const form = formOf(part, rules)
    if (form.kind === 'file') {
      const file = traits.resultMedia?.test(form.file.mediaType) === true ? version.resultFile(form.file) : null
      if (file === null) files.push(form.file)
      else inside.push(file)
      continue
    }
    const text = form.kind === 'text' ? form.text : omission(form.problem)
    texts.push(text)
    inside.push(textPart(text))
  }
  const hasFiles = inside.length > texts.length
  return { output: hasFiles ? { type: 'content', value: inside } : { type, value: texts.join('\n\n') }, files }
}
