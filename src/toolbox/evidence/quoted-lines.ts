import type { FileEvidence } from '../../tools/evidence.js'
import { readLineRange, splitLines } from '../workspace/lines.js'
import { shownPath } from '../workspace/path-text.js'
import { openFile, withResolved } from '../workspace/safe-open.js'
import { workspaceOf } from '../workspace/workspace.js'
import type { EvidenceSources, Quoted } from './sources.js'

/** The lines of a file that a quotation is said to be from. */
export function quotedLines(evidence: FileEvidence, sources: EvidenceSources): Promise<Quoted> {
  const { file, from_line: first, to_line: last = first } = evidence
  if (last < first) return Promise.resolve({ problem: `\`to_line\` must be at least \`from_line\`, ${first}` })
  return linesOf(file, first, { last, sources })
}

/** Bytes of what is compared: a quotation from more names no place. */
const MOST_BYTES = 4_000_000

/** All whole roots are readable to a check: it gives away whether a quotation is true, and nothing else. */
const OPTIONS = {}

/** Lines `first` to `last` of a file, joined as they stand. */
export async function linesOf(
  file: string,
  first: number,
  { last, sources }: { readonly last: number; readonly sources: EvidenceSources },
): Promise<Quoted> {
  const workspace = workspaceOf(OPTIONS, sources.root)
  return withResolved(
    () => workspace.rootPolicy.resolve(file),
    async (path) => {
      const { handle } = await openFile(workspace, path, shownPath(file))
      try {
        const range = { offset: first, limit: last - first + 1, maxBytes: MOST_BYTES, signal: sources.signal }
        const { bytes, end } = await readLineRange(handle, range)
        const shown = shownPath(file)
        const place = first === last ? `line ${first} of \`${shown}\`` : `lines ${first} to ${last} of \`${shown}\``
        if (end === 'bytes') return { problem: `${place} are too much to be compared: name fewer lines` }
        const text = new TextDecoder().decode(bytes)
        const count = splitLines(text).length
        if (count > 0) return { text, place }
        return { problem: `\`${shown}\` has no line ${first}` }
      } finally {
        await handle.close()
      }
    },
  )
}
