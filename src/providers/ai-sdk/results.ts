import type { ToolEntry } from '../../contracts/entry.js'
import { formOf, hasContent, filePart, textPart } from './content.js'
import type { ContentRules } from './content.js'
import { calledName } from '../wire/called-name.js'
import { promptCallId } from './traits.js'
import type { PromptMessage, PromptPart } from './wire.js'
import type { ProviderTraits } from './traits.js'
import type { PromptFile } from './versions.js'

export interface ResultRules extends ContentRules {
  readonly traits: ProviderTraits
}

/**
 * The results of a batch: one message, as most APIs want it. Files that the provider does not take within a result stand
 * behind it in a message of their own, with a word on where they come from.
 */
export function resultMessages(results: readonly ToolEntry[], rules: ResultRules): PromptMessage[] {
  const encoded = results.map((result) => encodeResult(result, rules))
  const content = encoded.map(({ part }) => part)
  const shown = encoded.flatMap((result) => result.shown)
  return [{ role: 'tool', content }, ...(shown.length > 0 ? [{ role: 'user', content: shown } as const] : [])]
}

interface EncodedResult {
  readonly part: PromptPart
  readonly shown: readonly PromptPart[]
}

function encodeResult(entry: ToolEntry, rules: ResultRules): EncodedResult {
  const toolCallId = promptCallId(entry.callId, rules.traits)
  const toolName = calledName(entry.name)
  const { output, beside } = outputOf(entry, rules)
  const origin = textPart(`From the result of the call \`${toolCallId}\` of \`${toolName}\`:`)
  const shown = beside.map((file) => filePart(file, rules.version))
  return {
    part: { type: 'tool-result', toolCallId, toolName, output },
    shown: shown.length > 0 ? [origin, ...shown] : [],
  }
}

interface Output {
  readonly output: PromptPart
  readonly beside: readonly PromptFile[]
}

/** Text alone where there is no file in it: with parts, the specification has no mark for a failure. */
function outputOf({ content, isError }: ToolEntry, rules: ResultRules): Output {
  const plain = (value: string): PromptPart => {
    return { type: isError && rules.traits.plainErrors !== true ? 'error-text' : 'text', value }
  }
  if (typeof content === 'string') return { output: plain(content), beside: [] }
  const texts: string[] = []
  const inside: PromptPart[] = []
  const beside: PromptFile[] = []
  for (const part of content.filter(hasContent)) {
    const form = formOf(part, rules)
    if (form.kind === 'file') {
      const file = fileWithin(form.file, rules)
      if (file === null) beside.push(form.file)
      else inside.push(file)
      continue
    }
    const text = form.kind === 'text' ? form.text : `[Left out of this result. ${form.problem}]`
    texts.push(text)
    inside.push(textPart(text))
  }
  const hasFiles = inside.length > texts.length
  return { output: hasFiles ? { type: 'content', value: inside } : plain(texts.join('\n\n')), beside }
}

function fileWithin(file: PromptFile, { traits, version }: ResultRules): PromptPart | null {
  return traits.resultMedia?.test(file.mediaType) === true ? version.resultFile(file) : null
}
