import { objectSchema } from '#util/json.js'
import type { ToolSpec, ToolOutcome } from '#core/tools/tool-spec.js'
import type { JsonObject } from '#util/json.js'
import { hasLoneSurrogate } from '#util/characters.js'
import { fileFailureOf, invalidInput } from '../../workspace/file-failure.js'
import type { FileFailure } from '../../workspace/file-failure.js'
import { fileTool } from '../../workspace/file-tool.js'
import type { FileCall } from '../../workspace/file-tool.js'
import { KnownFiles } from '../../workspace/known-files.js'
import type { FileToolOptions } from '../../workspace/options.js'
import { shownPath } from '../../workspace/path-text.js'
import { withResolved } from '../../workspace/safe-open.js'
import { editFile } from './edit-file.js'
import type { FileEdited } from './edit-file.js'

/** Most characters of all diffs of one call. */
const MAX_DIFF_CHARS = 4_000
/** Of one call: bounds its time and its result. */
const MOST_EDITS = 200

interface EditArguments {
  readonly edits: readonly EditOperation[]
}

interface EditOperation {
  readonly path: string
  readonly old_string: string
  readonly new_string: string
  readonly replace_all?: boolean
  readonly expected_replacements?: number
}

/** `edit`: one or more exact replacements, independent of each other. */
export function editTool(options: FileToolOptions = {}): ToolSpec {
  return fileTool<EditArguments>(options, {
    name: 'edit',
    description:
      'Make one or more exact text replacements in files. `old_string` must match once, unless `replace_all` is set.',
    instructions: [
      '`edit`: pass a list `edits` with `path`, `old_string` and `new_string` for each.',
      ...(options.requireRead === false ? [] : ['- Read a file before you edit it.']),
      '- Edits are applied in order, each to the result of the edits before it. Put independent edits in one call; order edits that build on each other.',
      '- `old_string` is exact text, spaces and indentation included, and long enough to be unique. Set `replace_all` only if every occurrence must change.',
      '- `expected_replacements` only checks the number of matches.',
      '- A failed edit does not undo the others: repeat only the failed ones.',
    ].join('\n'),
    parameters: objectSchema(['edits'], {
      edits: { type: 'array', minItems: 1, maxItems: MOST_EDITS, items: OPERATION },
    }),
    annotations: { readOnly: false, destructive: true, idempotent: false, openWorld: false },
    sequential: true,
    aliases: { all: 'replace_all', file: 'path', filename: 'path' },
    pathFields: ['path'],
    run: runEdits,
  })
}

const OPERATION = objectSchema(['path', 'old_string', 'new_string'], {
  path: { type: 'string', description: 'File to edit, relative to the workspace root.' },
  old_string: { type: 'string', description: 'The exact text to replace.' },
  new_string: { type: 'string', description: 'The text to put in its place.' },
  replace_all: { type: 'boolean', description: 'Replace every occurrence. Default false.' },
  expected_replacements: { type: 'integer', minimum: 1, description: 'Fail unless there are this many matches.' },
})

type EditResult =
  | { readonly ok: true; readonly path: string; readonly edited: FileEdited }
  | { readonly ok: false; readonly path: string; readonly failure: FileFailure }

async function runEdits(call: FileCall<EditArguments>): Promise<ToolOutcome> {
  const results: EditResult[] = []
  const known = KnownFiles.of(call)
  for (const operation of call.args.edits) {
    call.context.signal.throwIfAborted()
    results.push(await runEdit(call, operation, known))
  }
  const failures = results.flatMap((result) => (result.ok ? [] : [result.failure]))
  const content = results.map(editLine).join('\n')
  const metadata = {
    applied: results.length - failures.length,
    failed: failures.length,
    results: editMetadata(results),
    ...known?.metadata,
  }
  // A failure that the model can correct is more useful to it.
  const failure = failures.find(({ retry }) => retry) ?? failures[0]
  if (failure === undefined) return { kind: 'succeeded', content, metadata }
  return { kind: 'failed', errorType: failure.errorType, content, retry: failure.retry, metadata }
}

async function runEdit(
  call: FileCall<EditArguments>,
  operation: EditOperation,
  known: KnownFiles | null,
): Promise<EditResult> {
  const { path } = operation
  try {
    return { ok: true, path, edited: await applyEdit(call, operation, known) }
  } catch (error) {
    call.context.signal.throwIfAborted()
    const failure = fileFailureOf(error, shownPath(path))
    if (failure === undefined) throw error
    return { ok: false, path, failure }
  }
}

async function applyEdit(
  { workspace, context }: FileCall<EditArguments>,
  operation: EditOperation,
  known: KnownFiles | null,
): Promise<FileEdited> {
  const { path: raw, old_string: oldText, new_string: newText } = operation
  return withResolved(
    () => workspace.writePolicy.resolve(raw),
    async (path) => {
      if (oldText === '') throw invalidInput('old_string is empty: use `write` to create a file')
      if (hasLoneSurrogate(newText))
        throw invalidInput('new_string has half of a surrogate pair, which cannot be encoded in UTF-8')
      const replacement = {
        oldText,
        newText,
        replaceAll: operation.replace_all ?? false,
        expected: operation.expected_replacements,
      }
      return editFile(workspace, { path, shown: shownPath(raw), replacement, known, signal: context.signal })
    },
  )
}

function editLine(result: EditResult, index: number): string {
  const start = `${index + 1}. ${result.ok ? 'ok' : 'FAILED'} ${shownPath(result.path)}: `
  if (!result.ok) return start + result.failure.message
  const { replacements, repaired, lines } = result.edited
  const done = `${start}replaced ${replacements} occurrence(s)`
  if (!repaired) return done
  const [first = 0, last = 0] = lines[0] ?? []
  return `${done}; old_string matched only after its JSON escapes were decoded: check lines ${first} to ${last}`
}

/** The results for the metadata; diffs as long as there is room. */
function editMetadata(results: readonly EditResult[]): JsonObject[] {
  let room = MAX_DIFF_CHARS
  return results.map((result, index) => {
    const { ok, path } = result
    if (!result.ok) {
      const { message, errorType, metadata } = result.failure
      return { index: index + 1, ok, path, replacements: 0, error: message, error_type: errorType, ...metadata }
    }
    const { replacements, lines, diff, repaired } = result.edited
    const isShown = diff !== '' && diff.length <= room
    if (isShown) room -= diff.length
    return {
      index: index + 1,
      ok,
      path,
      replacements,
      lines,
      ...(isShown && { diff }),
      ...(repaired && { repaired }),
    }
  })
}
