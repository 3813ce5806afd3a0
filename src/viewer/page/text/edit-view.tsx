import { isObject } from '#util/json.js'
import { diffLines } from 'diff'
import { plainText } from './formatted-text.js'

/** A change of a text that a call asks for. */
export interface TextEdit {
  readonly path: string
  readonly before: string
  readonly after: string
}

/** Names of the two texts of an edit, in this library's tool and in those of others. */
const PAIRS = [
  ['old_string', 'new_string'],
  ['old_str', 'new_str'],
  ['oldText', 'newText'],
  ['old_text', 'new_text'],
] as const

/** The edits in the arguments of a call; of a whole new file, one from nothing. Empty for a call that edits nothing. */
export function editsOf(argument: unknown, path = ''): readonly TextEdit[] {
  if (!isObject(argument)) return []
  const at = [argument['path'], argument['file_path'], path].find((each) => typeof each === 'string') as string
  for (const [old, next] of PAIRS) {
    const [before, after] = [argument[old], argument[next]]
    if (typeof before === 'string' && typeof after === 'string') return [{ path: at, before, after }]
  }
  const { edits, content } = argument
  if (Array.isArray(edits)) return edits.flatMap((edit) => editsOf(edit, at))
  return typeof content === 'string' && at !== '' ? [{ path: at, before: '', after: content }] : []
}

/** Lines around a change that are plainText, and the most lines of one change. */
const AROUND = 3
const MOST_LINES = 400
/** A longer text is compared by its lines only as two whole texts: the comparison takes quadratic time. */
const LONGEST = 200_000

/** A change of a text, line by line. */
export function EditView({ edit }: { readonly edit: TextEdit }) {
  return (
    <figure class="edit">
      {edit.path !== '' && <figcaption class="mono quiet">{plainText(edit.path)}</figcaption>}
      <LineDiff before={edit.before} after={edit.after} />
    </figure>
  )
}

interface DiffLine {
  readonly sign: '+' | '-' | ' ' | '…'
  readonly text: string
}

export function LineDiff({ before, after }: { readonly before: string; readonly after: string }) {
  const lines = linesOf(before, after)
  const names = { '+': 'added', '-': 'removed', ' ': '', '…': 'quiet' }
  return (
    <div class="diff" role="group" aria-label="Changed lines">
      {lines.slice(0, MOST_LINES).map(({ sign, text }) => (
        <div class={names[sign]}>
          <span class="sign">{sign}</span>
          {plainText(text)}
        </div>
      ))}
      {lines.length > MOST_LINES && <div class="quiet">{`… ${lines.length - MOST_LINES} more lines`}</div>}
    </div>
  )
}

function linesOf(before: string, after: string): DiffLine[] {
  const changes =
    before.length + after.length > LONGEST
      ? [
          { value: before, removed: true, added: false },
          { value: after, added: true, removed: false },
        ]
      : diffLines(before, after)
  return changes.flatMap(({ value, added, removed }, index): DiffLine[] => {
    if (value === '') return []
    const lines = value.replace(/\n$/, '').split('\n')
    if (added || removed) return lines.map((text) => ({ sign: added ? '+' : '-', text }))
    const [head, tail] = [index === 0 ? 0 : AROUND, index === changes.length - 1 ? 0 : AROUND]
    const same = (text: string): DiffLine => ({ sign: ' ', text })
    if (lines.length <= head + tail + 1) return lines.map(same)
    const left: DiffLine = { sign: '…', text: `${lines.length - head - tail} equal lines` }
    return [...lines.slice(0, head).map(same), left, ...lines.slice(lines.length - tail).map(same)]
  })
}
