import { objectSchema } from '#util/json.js'
import { constants, lstatSync } from 'node:fs'
import type { BigIntStats } from 'node:fs'
import type { ToolOutcome, ToolSpec } from '#core/tools/tool-spec.js'
import { hasLoneSurrogate } from '#util/characters.js'
import { FileFailure, invalidInput } from '../workspace/file-failure.js'
import { fileTool } from '../workspace/file-tool.js'
import type { FileCall } from '../workspace/file-tool.js'
import { hashOfBytes, hashOfFile, KnownFiles } from '../workspace/known-files.js'
import { inFormOf } from '../workspace/lines.js'
import type { FileToolOptions } from '../workspace/options.js'
import { shownPath } from '../workspace/path-text.js'
import { appendToFile, replaceFile, withTarget, writableStats } from '../workspace/replace-file.js'
import type { WriteTarget } from '../workspace/replace-file.js'
import { editorFilesOf } from './editor-files.js'
import type { WritingEditor } from './editor-files.js'
import { openIn, withResolved } from '../workspace/safe-open.js'

interface WriteArguments {
  readonly path: string
  readonly content: string
  readonly append?: boolean
}

/** `write`: creates, overwrites or appends to a file. */
export function writeTool(options: FileToolOptions = {}): ToolSpec {
  return fileTool<WriteArguments>(options, {
    name: 'write',
    description: 'Create, overwrite or append to a UTF-8 text file under the workspace root.',
    instructions: [
      '`write`: use it for whole files or to append; prefer `edit` to change parts of a file.',
      ...(options.requireRead === false ? [] : ['- Read an existing file before you overwrite it.']),
      '- Pass `path` and the complete `content` at the top level. Missing folders are created.',
    ].join('\n'),
    parameters: objectSchema(['path', 'content'], {
      path: { type: 'string', description: 'File to write, relative to the workspace root.' },
      content: { type: 'string', description: 'The complete text of the file, or the text to append.' },
      append: { type: 'boolean', description: 'Add to the end of the file instead of replacing it. Default false.' },
    }),
    annotations: { readOnly: false, destructive: true, idempotent: false, openWorld: false },
    sequential: true,
    aliases: { file: 'path', filename: 'path' },
    pathFields: ['path'],
    run: writeFile,
  })
}

async function writeFile(call: FileCall<WriteArguments>): Promise<ToolOutcome> {
  const { workspace, args, context } = call
  const { content, append = false } = args
  const shown = shownPath(args.path)
  if (hasLoneSurrogate(content)) {
    throw invalidInput('`content` has half of a surrogate pair, which cannot be encoded in UTF-8.')
  }
  const resolve = async (): Promise<string> => {
    const path = await workspace.writePolicy.resolve(args.path)
    if (/[\\/]$/.test(args.path)) throw new FileFailure('PathTypeError', `path is a directory: ${shown}`)
    return path
  }
  const known = KnownFiles.of(call)
  return withResolved(resolve, async (path) => {
    const name = workspace.display(path)
    // The model could not read it.
    const file = known !== null && workspace.readPolicy.covers(path) ? { known, name } : null
    const { read, write } = editorFilesOf(workspace)
    const size = await withTarget(workspace, { path, shown, signal: context.signal, create: true }, async (target) => {
      if (write !== undefined) return writeInEditor({ read, write }, { target, path, content, append, file })
      const before = await beginningOf(target)
      const bytes = Buffer.from(append ? appended(before, content) : inFormOf(before, content))
      await (append ? appendTo(target, bytes, file) : overwriteFile(target, bytes, file))
      return bytes.length
    })
    const text = `${append ? 'appended' : 'wrote'} ${size} bytes to ${name}`
    return { kind: 'succeeded', content: text, metadata: { path, ...known?.metadata } }
  })
}

/** The line ends of the rest are taken to be the same. */
const FORM_BYTES = 65_536

async function beginningOf(target: WriteTarget): Promise<string> {
  if ((await writableStats(target)) === undefined) return ''
  const handle = await openIn(target.folder, target.name, { flags: constants.O_RDONLY })
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(FORM_BYTES), 0, FORM_BYTES, 0)
    return new TextDecoder('utf-8', { ignoreBOM: true }).decode(buffer.subarray(0, bytesRead))
  } finally {
    await handle.close()
  }
}

/** The mark is at the beginning only. */
function appended(before: string, content: string): string {
  return inFormOf(before.replace(/^\uFEFF/, ''), content)
}

/** A file that the model has to know before it changes it. */
interface KnownFile {
  readonly known: KnownFiles
  readonly name: string
}

interface EditorWrite {
  readonly target: WriteTarget
  readonly path: string
  readonly content: string
  readonly append: boolean
  readonly file: KnownFile | null
}

/** When the disk gets the text is for the editor to decide. */
async function writeInEditor(
  { read, write }: WritingEditor,
  { target, path, content, append, file }: EditorWrite,
): Promise<number> {
  const place = { path, shown: target.shown, signal: target.signal }
  const isThere = (await writableStats(target)) !== undefined
  const edited = await read?.(place)
  const hash = edited !== undefined ? hashOfText(edited) : isThere ? await fileHash(target) : undefined
  if (!append && hash !== undefined) file?.known.require(file.name, hash)
  const before = append ? (edited ?? (isThere ? await writtenText(target) : '')) : ''
  const own = append ? appended(before, content) : inFormOf(edited ?? (await beginningOf(target)), content)
  await write(place, before + own)
  if (append && hash !== undefined) file?.known.appended(file.name, hash, hashOfText(before + own))
  else file?.known.wrote(file.name, hashOfText(before + own))
  return Buffer.byteLength(own)
}

function hashOfText(text: string): string {
  return hashOfBytes(Buffer.from(text))
}

async function writtenText({ folder, name, shown }: WriteTarget): Promise<string> {
  const handle = await openIn(folder, name, { flags: constants.O_RDONLY })
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(await handle.readFile())
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
    throw new FileFailure('InvalidInput', `${shown} is not UTF-8 text`)
  } finally {
    await handle.close()
  }
}

async function overwriteFile(target: WriteTarget, bytes: Buffer, file: KnownFile | null): Promise<void> {
  const old = await writableStats(target)
  if (old !== undefined && file !== null) file.known.require(file.name, await fileHash(target))
  await replaceFile(target, old, {
    write: (copy) => copy.writeFile(bytes),
    ...(old !== undefined && file !== null && { requireUnchanged: () => requireSame(target, old) }),
  })
  file?.known.wrote(file.name, hashOfBytes(bytes))
}

async function appendTo(target: WriteTarget, bytes: Buffer, file: KnownFile | null): Promise<void> {
  const before = file === null || (await writableStats(target)) === undefined ? undefined : await fileHash(target)
  await appendToFile(target, bytes)
  if (file === null) return
  const after = await fileHash(target)
  if (before === undefined) file.known.wrote(file.name, after)
  else file.known.appended(file.name, before, after)
}

async function fileHash({ folder, name, signal }: WriteTarget): Promise<string> {
  const handle = await openIn(folder, name, { flags: constants.O_RDONLY })
  try {
    return await hashOfFile(handle, signal)
  } finally {
    await handle.close()
  }
}

/** In the tick of the replacement: nothing else of this process runs in between. */
function requireSame({ folder, name, shown }: WriteTarget, old: BigIntStats): void {
  const { ino, size, mtimeNs } = lstatSync(folder.at(name), { bigint: true })
  if (ino !== old.ino || size !== old.size || mtimeNs !== old.mtimeNs)
    throw new FileFailure('ChangedSinceRead', `${shown} was changed meanwhile by another program: read it again`)
}
