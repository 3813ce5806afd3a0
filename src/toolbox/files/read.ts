import { objectSchema } from '#util/json.js'
import type { ToolSpec, ToolOutcome } from '#core/tools/tool-spec.js'
import type { JsonObject } from '#util/json.js'
import { characterCount, firstCharacters, isLonger } from '#util/characters.js'
import { FileFailure, isMissing } from '../workspace/file-failure.js'
import { fileTool } from '../workspace/file-tool.js'
import type { FileCall } from '../workspace/file-tool.js'
import { readMark } from '../workspace/known-files.js'
import { readLineRange, splitLines } from '../workspace/lines.js'
import type { LinesRead } from '../workspace/lines.js'
import type { FileToolOptions } from '../workspace/options.js'
import { shownPath } from '../workspace/path-text.js'
import { editorFilesOf } from './editor-files.js'
import { mediaKind, readDocumentOrImage, requireNoPages } from './read-document-or-image.js'
import type { DocumentText } from './read-document-or-image.js'
import { openFile, withResolved } from '../workspace/safe-open.js'
import type { OpenedFile } from '../workspace/safe-open.js'
import { artifactSource, isArtifact, saveOutput, spill } from '../workspace/spill.js'
import { workspaceOf } from '../workspace/workspace.js'
import type { Workspace } from '../workspace/workspace.js'

interface ReadArguments {
  readonly path: string
  readonly offset?: number
  readonly limit?: number
  readonly max_chars?: number
  readonly pages?: string
  readonly line_numbers?: boolean
}

/** Characters that a page of a saved output reserves for its first line. */
const NOTE_CHARS = 200

/** `read`: a text file, or a range of its lines; an image; the text of a PDF or Word document. */
export function readTool(options: FileToolOptions = {}): ToolSpec {
  return fileTool<ReadArguments>(options, {
    name: 'read',
    description:
      'Read a UTF-8 text file, whole or a range of its lines; an image (PNG, JPEG, GIF, WebP); the text of a PDF by pages; or a Word document (DOCX) as Markdown.',
    instructions: [
      '`read`: use it when you know the path.',
      '- Omit `offset` and `limit` to read the whole file up to the cap; set both for a part of a large file.',
      '- Set `max_chars` only if a shorter excerpt is sufficient.',
    ].join('\n'),
    parameters: objectSchema(['path'], {
      path: { type: 'string', description: 'File to read, relative to the workspace root.' },
      offset: { type: 'integer', minimum: 1, description: 'First line to read, counted from 1. Default 1.' },
      limit: { type: 'integer', minimum: 1, description: 'Most lines to read. Default: to the end of the file.' },
      max_chars: { type: 'integer', minimum: 1, description: 'Most characters to return, below the usual cap.' },
      pages: {
        type: 'string',
        pattern: '^\\d{1,6}(-\\d{1,6})?$',
        description: 'Pages of a PDF, such as `3` or `2-5`. Default: the first 20.',
      },
      line_numbers: { type: 'boolean', description: 'Number and tab before each line. Default false.' },
    }),
    annotations: { readOnly: true, idempotent: true, openWorld: false },
    aliases: { file: 'path', filename: 'path' },
    pathFields: ['path'],
    saveOutput: (output) => saveOutput(workspaceOf(options, output.root), output),
    run: readFile,
  })
}

interface Reading {
  readonly call: FileCall<ReadArguments>
  readonly path: string
  /** In bytes. */
  readonly size: number
  /** First line, from 1. */
  readonly offset: number
  /** Longest result, in characters. */
  readonly maxChars: number
  /** Its path as the model knows it. */
  readonly shown: string
}

/** Of a file of the disk. */
interface DiskReading extends Reading {
  readonly file: OpenedFile
}

async function readFile(call: FileCall<ReadArguments>): Promise<ToolOutcome> {
  const { workspace, args } = call
  return withResolved(
    () => readablePath(workspace, args.path),
    async (path) => {
      const edited = await textInEditor(call, path)
      if (edited !== undefined) return readEdited(call, path, edited)
      const file = await openFile(workspace, path, shownPath(args.path))
      try {
        const reading = { ...startReading(call, path, Number(file.stats.size)), file }
        return isArtifact(workspace, path) ? await readArtifact(reading) : await readMarked(reading)
      } finally {
        await file.handle.close()
      }
    },
  )
}

function startReading(call: FileCall<ReadArguments>, path: string, size: number): Reading {
  const { workspace, args } = call
  const maxChars = Math.min(args.max_chars ?? Infinity, workspace.limits.maxReadChars)
  return { call, path, size, offset: args.offset ?? 1, maxChars, shown: workspace.display(path) }
}

/** What an editor has of a text file; `undefined`: the disk has the file, or the reason why it cannot be read. */
async function textInEditor(
  { workspace, args, context }: FileCall<ReadArguments>,
  path: string,
): Promise<string | undefined> {
  const { read } = editorFilesOf(workspace)
  if (read === undefined || isArtifact(workspace, path)) return undefined
  const shown = shownPath(args.path)
  try {
    const file = await openFile(workspace, path, shown)
    try {
      if ((await mediaKind(file)) !== undefined) return undefined
    } finally {
      await file.handle.close()
    }
  } catch (error) {
    // A file that was never saved.
    if (!isMissing(error)) throw error
  }
  return read({ path, shown, signal: context.signal })
}

async function readEdited(call: FileCall<ReadArguments>, path: string, text: string): Promise<ToolOutcome> {
  const bytes = Buffer.from(text)
  const reading = startReading(call, path, bytes.length)
  const { args, workspace } = call
  requireNoPages({ pages: args.pages, shown: reading.shown })
  if (args.limit === undefined && bytes.length > workspace.limits.maxReadBytes) throw tooLargeToRead(reading)
  const mark = await readMark(call, reading.shown, bytes)
  return markedOutcome(await spillResult(reading, wholeResult(reading, splitLines(text))), mark)
}

function tooLargeToRead({ call, shown, size }: Reading): FileFailure {
  const { maxReadBytes } = call.workspace.limits
  return new FileFailure(
    'FileTooLarge',
    `${shown} has ${size} bytes, more than the ${maxReadBytes} that are read at once: set \`offset\` and \`limit\`.`,
    { metadata: { size_bytes: size, max_read_bytes: maxReadBytes } },
  )
}

async function readablePath(workspace: Workspace, raw: string): Promise<string> {
  const path = await workspace.rootPolicy.resolve(raw)
  if (!isArtifact(workspace, path)) workspace.readPolicy.requireCovered(path, raw)
  return path
}

/** With the hash of the file: taken before, so that a change in between makes the file another one. */
async function readMarked(reading: DiskReading): Promise<ToolOutcome> {
  const mark = await readMark(reading.call, reading.shown, reading.file.handle)
  return markedOutcome(await readOrdinary(reading), mark)
}

function markedOutcome(outcome: ToolOutcome, mark: JsonObject): ToolOutcome {
  return outcome.kind === 'succeeded' ? { ...outcome, metadata: { ...outcome.metadata, ...mark } } : outcome
}

async function readOrdinary(reading: DiskReading): Promise<ToolOutcome> {
  const { args, context, workspace } = reading.call
  const { file, shown } = reading
  const timeoutMs = workspace.limits.searchTimeoutMs
  const media = await readDocumentOrImage({ file, shown, pages: args.pages, timeoutMs, signal: context.signal })
  if (media?.kind === 'document') return spillResult(reading, documentResult(reading, media))
  if (media !== undefined) return media
  const text = await wholeText(reading)
  if (text !== undefined) return spillResult(reading, wholeResult(reading, splitLines(text)))
  if (args.limit !== undefined) return spillResult(reading, await rangeResult(reading, args.limit))
  throw tooLargeToRead(reading)
}

function documentResult(reading: Reading, { byPages, text }: DocumentText): ReadResult {
  return byPages ? { content: text, totalLines: null, returnedLines: 0 } : wholeResult(reading, splitLines(text))
}

/** A saved output is never saved again: as many whole lines as fit, and the offset of the next one. */
async function readArtifact(reading: DiskReading): Promise<ToolOutcome> {
  const source = { content_source: artifactSource(reading.path) }
  const text = await wholeText(reading)
  if (text !== undefined) {
    const result = wholeResult(reading, splitLines(text))
    if (!isLonger(result.content, reading.maxChars)) return readOutcome(reading, result, source)
  }
  return readOutcome(reading, await pageResult(reading), source)
}

interface ReadResult {
  readonly content: string
  readonly totalLines: number | null
  readonly returnedLines: number
}

/** `undefined` for a file that is too large to be read at once. */
async function wholeText({ call, file }: DiskReading): Promise<string | undefined> {
  const { maxReadBytes } = call.workspace.limits
  if (file.stats.size > maxReadBytes) return undefined
  const range = { offset: 1, limit: Infinity, maxBytes: maxReadBytes, signal: call.context.signal }
  const read = await readLineRange(file.handle, range)
  return read.end === 'file' ? decodeLines(read) : undefined
}

/** A whole file is its text, without a note. */
function wholeResult(reading: Reading, lines: readonly string[]): ReadResult {
  const { call, offset, shown } = reading
  const { limit = Infinity } = call.args
  const chosen = lines.slice(offset - 1, offset - 1 + limit)
  const next = offset + chosen.length
  const more = chosen.length > 0 && next <= lines.length ? `; more lines are available from offset=${next}` : ''
  const isWhole = chosen.length > 0 && chosen.length === lines.length
  const note = isWhole ? '' : `read ${chosen.length} of ${lines.length} lines from ${shown}${more}`
  return { content: framedText(reading, note, chosen), totalLines: lines.length, returnedLines: chosen.length }
}

async function rangeResult(reading: DiskReading, limit: number): Promise<ReadResult> {
  const { call, file, offset, shown } = reading
  const { maxReadBytes } = call.workspace.limits
  const read = await readLineRange(file.handle, { offset, limit, maxBytes: maxReadBytes, signal: call.context.signal })
  const { lines, cut } = wholeLines(read)
  const next = offset + lines.length
  const note = [
    `read ${lines.length} line(s) from large file ${shown} starting at line ${offset}`,
    ...(cut ? [`line ${offset} is cut after ${maxReadBytes} bytes`] : []),
    ...(read.end === 'bytes' ? [`the range has more than ${maxReadBytes} bytes, continue from offset=${next}`] : []),
    ...(read.end !== 'bytes' && lines.length === limit ? [`more lines may be available from offset=${next}`] : []),
  ].join('; ')
  return { content: framedText(reading, note, lines), totalLines: null, returnedLines: lines.length }
}

async function pageResult(reading: DiskReading): Promise<ReadResult> {
  const { call, file, offset, maxChars, shown } = reading
  const { limit = Infinity } = call.args
  // A character has at most four bytes.
  const range = { offset, limit, maxBytes: maxChars * 4, signal: call.context.signal }
  const read = await readLineRange(file.handle, range)
  const { lines, cut } = wholeLines(read)
  const budget = Math.max(1, maxChars - NOTE_CHARS)
  const page = fittingLines(lines, budget, offset)
  const next = offset + page.length
  const isCut = cut || (page.length === 1 && page[0] !== lines[0])
  const more = page.length < lines.length || read.end !== 'file'
  const note = [
    `read ${page.length} line(s) from saved output ${shown} starting at line ${offset}`,
    ...(isCut ? [`line ${offset} is cut after ${characterCount(page[0] ?? '')} characters`] : []),
    ...(more ? [`more lines are available from offset=${next}`] : []),
  ].join('; ')
  return { content: framedText(reading, note, page), totalLines: null, returnedLines: page.length }
}

/** As many lines as fit, and at least one, cut if it is too long. */
function fittingLines(lines: readonly string[], budget: number, offset: number): string[] {
  const page: string[] = []
  let left = budget
  for (const [index, line] of lines.entries()) {
    left -= characterCount(line) + String(offset + index).length + 2
    if (left < 0) break
    page.push(line)
  }
  const [first] = lines
  if (page.length === 0 && first !== undefined) page.push(firstCharacters(first, budget))
  return page
}

/** The lines of a range; if its bytes were cut, without the last one, unless that is the only one. */
function wholeLines(read: LinesRead): { readonly lines: readonly string[]; readonly cut: boolean } {
  const text = decodeLines(read)
  const lines = splitLines(text)
  if (read.end !== 'bytes' || text.endsWith('\n')) return { lines, cut: false }
  return lines.length > 1 ? { lines: lines.slice(0, -1), cut: false } : { lines, cut: true }
}

/** Invalid bytes are replaced; a byte order mark at the start, and a cut character at the end of a range, are omitted. */
function decodeLines({ bytes, end }: LinesRead): string {
  return new TextDecoder().decode(bytes, { stream: end === 'bytes' })
}

/** Lines as they are, so that they can be copied, after a note in brackets; with their numbers if the model asks for them. */
function framedText({ call, offset }: Reading, note: string, lines: readonly string[]): string {
  const isNumbered = call.args.line_numbers === true
  const shown = isNumbered ? lines.map((line, index) => `${offset + index}\t${line}`) : lines
  return [...(note === '' ? [] : [`[${note}]`]), ...shown].join('\n')
}

async function spillResult(reading: Reading, result: ReadResult): Promise<ToolOutcome> {
  const limit = reading.maxChars
  const { content, metadata } = await spill(reading.call.workspace, { text: result.content, prefix: 'read', limit })
  return readOutcome(reading, { ...result, content }, metadata)
}

function readOutcome({ path, size }: Reading, result: ReadResult, metadata: JsonObject = {}): ToolOutcome {
  return {
    kind: 'succeeded',
    content: result.content,
    metadata: {
      path,
      total_lines: result.totalLines,
      returned_lines: result.returnedLines,
      size_bytes: size,
      ...metadata,
    },
  }
}
