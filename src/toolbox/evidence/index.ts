import type { CheckEvidence, Evidence } from '../../tools/evidence.js'
import { FileFailure, isMissing, isSystemError, PathValidationError } from '../workspace/failure.js'
import { quotedLines } from './quoted-lines.js'
import { quotedResult } from './quoted-result.js'
import { quotedRow } from './quoted-row.js'
import type { EvidenceSources, Quoted } from './sources.js'

/**
 * Compares quotations with what stands in files of the workspace, in rows of JSONL files and in tool results of the
 * conversation. White space counts as one space. Gives what is wrong in words for the model.
 */
export function evidenceCheck(sources: EvidenceSources): CheckEvidence {
  return async (evidence) => {
    if (wordsOf(evidence.quote) === '') return '`quote` must not be empty'
    try {
      return comparison(evidence, await quoted(evidence, sources))
    } catch (error) {
      if (error instanceof PathValidationError || error instanceof FileFailure) return error.message
      if (isMissing(error)) return '`file` names no file of the workspace'
      if (isSystemError(error)) return `the file cannot be read (${error.code ?? 'unknown'})`
      throw error
    }
  }
}

function quoted(evidence: Evidence, sources: EvidenceSources): Promise<Quoted> | Quoted {
  if ('call_id' in evidence) return quotedResult(evidence, sources)
  return 'row' in evidence ? quotedRow(evidence, sources) : quotedLines(evidence, sources)
}

function comparison({ quote }: Evidence, found: Quoted): string | undefined {
  if ('problem' in found) return found.problem
  if (wordsOf(found.text).includes(wordsOf(quote))) return undefined
  return `\`quote\` does not stand in ${found.place}: copy it word for word, or name the place where it stands`
}

function wordsOf(text: string): string {
  return text.normalize('NFC').replace(/\s+/g, ' ').trim()
}
