import { closeSync, constants, fstatSync, readFileSync } from 'node:fs'
import type { BigIntStats } from 'node:fs'
import { FileFailure, invalidInput, notFound } from '../../workspace/file-failure.js'
import { hashOfBytes } from '../../workspace/known-files.js'
import type { KnownFiles } from '../../workspace/known-files.js'
import { readLineRange } from '../../workspace/lines.js'
import { replaceFile, withTarget, writableStats } from '../../workspace/replace-file.js'
import type { WriteTarget } from '../../workspace/replace-file.js'
import { openIn, openSyncIn, statIn } from '../../workspace/safe-open.js'
import type { Workspace } from '../../workspace/workspace.js'
import { editorFilesOf } from '../editor-files.js'
import { changedLines, lineNumbers, nearestLines, smallDiff, replaceText } from './replace-text.js'
import type { Replaced, Replacement } from './replace-text.js'

const MAX_EDIT_BYTES = 10_000_000

export interface FileEdit {
  /** Absolute, links resolved, allowed. */
  readonly path: string
  /** Its path as the model knows it. */
  readonly shown: string
  readonly replacement: Replacement
  /** The files that the model knows; null if it need not know them. */
  readonly known: KnownFiles | null
  readonly signal: AbortSignal
}

export interface FileEdited {
  readonly replacements: number
  /** First and last line of the first few changes, in the changed file. */
  readonly lines: readonly (readonly [number, number])[]
  /** The first few changes; empty if the file may not be read. */
  readonly diff: string
  readonly repaired: boolean
}

/**
 * Replaces text in one file, in one step; to be called within `withResolved`.
 * @throws FileFailure.
 */
export async function editFile(workspace: Workspace, edit: FileEdit): Promise<FileEdited> {
  const { path, shown, signal, replacement, known } = edit
  return withTarget(workspace, { path, shown, signal }, async (target) => {
    const { read, write } = editorFilesOf(workspace)
    const place = { path, shown, signal }
    const look = async (): Promise<Buffer | undefined> => editorBytes(await read?.(place), shown)
    const edited = await look()
    const old = await editableStats(target, edited !== undefined)
    const before = edited ?? (await readBytes(target))
    const text = decodeText(before, shown)
    const mayBeRead = workspace.readPolicy.covers(path)
    const name = workspace.display(path)
    if (mayBeRead) known?.require(name, hashOfBytes(before))
    const result = replaceText(text, replacement)
    if (result.kind !== 'replaced') throw refusedEdit(result, { text, shown, mayBeRead, replacement })

    const after = Buffer.from(result.text)
    if (write === undefined) {
      await replaceFile(target, old, {
        write: (file) => file.writeFile(after),
        requireUnchanged: () => requireSame(target, before),
      })
    } else {
      if (!((await look()) ?? (await readBytes(target))).equals(before)) throw conflictFailure(shown)
      await write(place, result.text)
    }
    known?.wrote(name, hashOfBytes(after))
    return {
      replacements: result.count,
      lines: changedLines(result.text, result.changes),
      diff: mayBeRead ? smallDiff(text, result.text, result.changes) : '',
      repaired: result.repaired,
    }
  })
}

/** `undefined` for a file that was never saved: only an editor has it. */
async function editableStats(target: WriteTarget, isEdited: boolean): Promise<BigIntStats | undefined> {
  const { folder, name, shown } = target
  const there = await statIn(folder, name)
  if (there !== undefined && !there.isFile() && !there.isSymbolicLink()) {
    throw new FileFailure('PathTypeError', `path is not a file: ${shown}`)
  }
  const stats = await writableStats(target)
  if (stats === undefined && !isEdited) throw notFound(shown)
  return stats
}

/** What an editor has of a file, in bytes. */
function editorBytes(text: string | undefined, shown: string): Buffer | undefined {
  const bytes = text === undefined ? undefined : Buffer.from(text)
  if (bytes !== undefined && bytes.length > MAX_EDIT_BYTES) throw tooLargeToEdit(shown)
  return bytes
}

async function readBytes({ folder, name, shown, signal }: WriteTarget): Promise<Buffer> {
  const file = await openIn(folder, name, { flags: constants.O_RDONLY })
  try {
    if (!(await file.stat()).isFile()) throw conflictFailure(shown)
    const range = { offset: 1, limit: Infinity, maxBytes: MAX_EDIT_BYTES, signal }
    const { bytes, end } = await readLineRange(file, range)
    if (end === 'file') return bytes
    throw tooLargeToEdit(shown)
  } finally {
    await file.close()
  }
}

/** Reads at once: between this look and the replacement nothing else of this process runs. */
function requireSame({ folder, name, shown }: WriteTarget, before: Buffer): void {
  const file = openSyncIn(folder, name)
  try {
    const stats = fstatSync(file)
    if (!stats.isFile() || stats.size !== before.length || !readFileSync(file).equals(before))
      throw conflictFailure(shown)
  } finally {
    closeSync(file)
  }
}

/** Only text can be written back unchanged, so other files are rejected. */
function decodeText(bytes: Buffer, shown: string): string {
  if (bytes.includes(0)) throw mismatchFailure(`${shown} is a binary file`)
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw mismatchFailure(`${shown} is not UTF-8 text`)
  }
}

interface RefusalContext {
  readonly text: string
  readonly shown: string
  readonly mayBeRead: boolean
  readonly replacement: Replacement
}

type Refusal = Exclude<Replaced, { readonly kind: 'replaced' }>

function refusedEdit(result: Refusal, { text, shown, mayBeRead, replacement }: RefusalContext): FileFailure {
  switch (result.kind) {
    case 'equal':
      return invalidInput('old_string and new_string are equal: there is nothing to change')
    case 'not_found':
      return mismatchFailure(
        `old_string not found in ${shown}.${mayBeRead ? nearestLinesText(text, replacement.oldText) : ''}`,
      )
    case 'unexpected_count':
      return mismatchFailure(
        `expected ${result.expected} replacement(s), found ${result.count} match(es)`,
        result.count,
      )
    case 'ambiguous': {
      const lines = lineNumbers(text, result.offsets).join(', ')
      const more = result.count > result.offsets.length ? ', …' : ''
      const advice = 'include more of the surrounding text, or set replace_all'
      return mismatchFailure(
        `old_string matches ${result.count} times, in lines ${lines}${more}: ${advice}`,
        result.count,
      )
    }
    case 'too_large':
      return invalidInput(`${shown} would become too large`)
  }
}

function nearestLinesText(text: string, wanted: string): string {
  const lines = nearestLines(text, wanted).map(({ line, text }) => `${line}: ${text}`)
  const near = lines.length === 0 ? '' : ` The nearest lines are ${lines.map((line) => `\`${line}\``).join(', ')}.`
  return `${near} Read the file again and copy the text exactly.`
}

function tooLargeToEdit(shown: string): FileFailure {
  return mismatchFailure(`${shown} has more than the ${MAX_EDIT_BYTES} bytes that can be edited`)
}

function conflictFailure(shown: string): FileFailure {
  return mismatchFailure(`${shown} was changed meanwhile by another program: read it again`)
}

/** The file is not as the model expects: an ordinary failure, like a missing file. */
function mismatchFailure(message: string, matches?: number): FileFailure {
  return new FileFailure('InvalidInput', message, matches === undefined ? {} : { metadata: { matches } })
}
