import { randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { lstat, readdir, unlink } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join } from 'node:path'
import { CONTENT_SOURCES, savedAs } from '#contracts/entry.js'
import type { ContentSource } from '#contracts/entry.js'
import { wholeEnd, wholeStart } from '#core/tools/boundary/input-summary.js'
import type { LongOutput, SavedOutput } from '#core/tools/tool-spec.js'
import { isObject, parseJson } from '#util/json.js'
import type { JsonObject } from '#util/json.js'
import { characterCount, firstCharacters, isLonger, lastCharacters } from '#util/characters.js'
import { fileFailureOf, isSystemError } from './file-failure.js'
import { openFolder, openIn } from './safe-open.js'
import type { Folder } from './safe-open.js'
import type { Workspace } from './workspace.js'

/** Longest line of a saved output, in characters: a page of `read` has at least one whole line. */
const LONGEST_LINE = 10_000
/** The name of the tool, the kind of the source if the name does not say it, the time and random digits. */
const ARTIFACT_NAME = /^([\w-]{1,80}(?:\.[a-z]+)?)-(\d{1,16})-[0-9a-f]{8}\.txt$/

export interface SpillRequest {
  readonly text: string
  /** Prefix of the artifact's name: the tool's name, small letters and `_`. */
  readonly prefix: string
  /** Longest text that is returned unchanged, in characters. */
  readonly limit: number
}

export interface Spilled {
  readonly content: string
  /** Empty if the text was short enough. */
  readonly metadata: JsonObject
}

/**
 * Text for a model: unchanged, or its beginning and end if it is longer than the limit. The full text is saved to a file in
 * `outputDir`, which `read` may read whatever the read paths are. If it cannot be saved, the result says so.
 */
export async function spill(workspace: Workspace, { text, prefix, limit }: SpillRequest): Promise<Spilled> {
  if (!isLonger(text, limit)) return { content: text, metadata: {} }
  const chars = characterCount(text)
  const head = Math.floor(limit / 2)
  const excerpt = `${firstCharacters(text, head)}\n...\n${lastCharacters(text, limit - head)}`
  const sizes = `The output has ${chars} characters, more than the limit of ${limit}.`
  try {
    const path = await saveText(workspace, prefix, text)
    const shown = workspace.display(path)
    return {
      content: `${sizes} ${describePlace(shown)}\n${excerpt}`,
      metadata: { truncated: true, saved_to: path, saved_to_display: shown, chars },
    }
  } catch (error) {
    const failure = fileFailureOf(error)
    if (failure === undefined) throw error
    const warning = `The full text could not be saved: ${failure.message}. Narrow the call to see the rest.`
    return { content: `${sizes}\n${warning}\n${excerpt}`, metadata: { truncated: true, chars } }
  }
}

/**
 * A result of any tool that is too long for the model, saved like those of the file tools. The note about its place is whole,
 * even if it leaves no room for the start and the end.
 * @throws FileFailure if it cannot be saved.
 */
export async function saveOutput(
  workspace: Workspace,
  { toolName, text, maxChars, source }: LongOutput,
): Promise<SavedOutput> {
  const path = await saveText(workspace, `${toolName}.${source ?? 'workspace'}`, text)
  const shown = workspace.display(path)
  const note = `The output has ${text.length} characters, more than the limit of ${maxChars}. ${describePlace(shown)}\n`
  const room = Math.max(maxChars - note.length - SEPARATOR.length, Math.floor(maxChars / 2))
  const start = wholeStart(text, Math.ceil(room / 2))
  const content = `${note}${start}${SEPARATOR}${wholeEnd(text, Math.floor(room / 2))}`
  const metadata = { truncated: true, saved_to: path, saved_to_display: shown, chars: text.length }
  return { content, metadata }
}

const SEPARATOR = '\n...\n'

function describePlace(shown: string): string {
  return `Its full text is in ${shown}.\nCall \`read\` with path \`${shown}\` and offset=1, then continue with later offsets.`
}

/** True if a path has the folder and the name of an artifact: the file tools write no others there. */
export function isArtifact(workspace: Workspace, path: string): boolean {
  return dirname(path) === workspace.outputDir && ARTIFACT_NAME.test(basename(path))
}

/** The source of a saved output: that of the tool that saved it, by the prefix of its name. */
export function artifactSource(path: string): ContentSource['kind'] {
  const [, name = ''] = ARTIFACT_NAME.exec(basename(path)) ?? []
  const [prefix = '', sourceKind] = name.split('.')
  const kind = CONTENT_SOURCES.find((each) => each === sourceKind)
  if (kind !== undefined) return kind
  if (prefix === 'fetch_url') return 'web'
  return prefix.startsWith('bash_') ? 'command' : 'workspace'
}

/** The metadata of a result with text of these files, and the name under which it is saved: saved outputs among them keep their sources. */
export function sourcesOfFiles(
  workspace: Workspace,
  paths: Iterable<string>,
  prefix: string,
): { readonly metadata: JsonObject; readonly prefix: string } {
  const kinds = new Set([...paths].flatMap((path) => (isArtifact(workspace, path) ? [artifactSource(path)] : [])))
  kinds.delete('workspace')
  if (kinds.size === 0) return { metadata: {}, prefix }
  const source: ContentSource = { kind: 'workspace', sources: [...kinds].map((kind) => ({ kind })) }
  return { metadata: { content_source: { ...source } }, prefix: `${prefix}.${savedAs(source) ?? 'web'}` }
}

async function saveText(workspace: Workspace, prefix: string, text: string): Promise<string> {
  const folder = await openFolder(workspace, workspace.outputDir, true)
  try {
    const name = await writeNew(folder, prefix, Buffer.from(inLines(text)))
    await removeOldest(folder, workspace.limits.maxOutputFiles)
    return join(folder.path, name)
  } finally {
    await folder.close()
  }
}

/**
 * A text in lines that `read` can show: JSON is laid out, a value on each line; other lines that are too long are broken. A text
 * of shorter lines is unchanged.
 */
function inLines(text: string): string {
  if (!hasLongLine(text)) return text
  const parsed = /^\s*[[{]/.test(text) ? parseJson(text) : null
  const lines = (parsed?.ok === true ? laidOut(parsed.value) : text).split('\n')
  return lines.flatMap(linePieces).join('\n')
}

function hasLongLine(text: string): boolean {
  for (let start = 0; start < text.length;) {
    const end = text.indexOf('\n', start)
    if ((end === -1 ? text.length : end) - start > LONGEST_LINE) return true
    if (end === -1) return false
    start = end + 1
  }
  return false
}

/** Of an element of this length, its members are on lines of their own. */
const LONG_VALUE = 400
const DEEPEST = 20

function laidOut(value: unknown, depth = 0): string {
  const text = JSON.stringify(value)
  if (text.length <= LONG_VALUE || depth > DEEPEST || !(isObject(value) || Array.isArray(value))) return text
  if (Array.isArray(value)) return `[\n${value.map((each) => laidOut(each, depth + 1)).join(',\n')}\n]`
  const members = Object.entries(value).map(([key, each]) => `${JSON.stringify(key)}: ${laidOut(each, depth + 1)}`)
  return `{\n${members.join(',\n')}\n}`
}

function linePieces(line: string): readonly string[] {
  if (line.length <= LONGEST_LINE) return [line]
  const all: string[] = []
  for (let rest = line; rest !== '';) {
    const piece = wholeStart(rest, LONGEST_LINE)
    all.push(piece)
    rest = rest.slice(piece.length)
  }
  return all
}

/** The time in the name of the last file: each file of this process has its own, so that they can be ordered. */
let lastTime = 0

async function writeNew(folder: Folder, prefix: string, bytes: Buffer): Promise<string> {
  lastTime = Math.max(Date.now(), lastTime + 1)
  const name = `${prefix}-${lastTime}-${randomBytes(4).toString('hex')}.txt`
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL
  const file = await openIn(folder, name, { flags, mode: 0o600 })
  try {
    await file.writeFile(bytes)
  } catch (error) {
    await unlink(folder.at(name))
    throw error
  } finally {
    await file.close()
  }
  return name
}

/** Only files with the name of an artifact are removed: the folder may contain others. */
async function removeOldest(folder: Folder, keep: number): Promise<void> {
  const artifacts = (await readdir(folder.at('.'))).filter((name) => ARTIFACT_NAME.test(name))
  if (artifacts.length <= keep) return
  artifacts.sort((left, right) => spillTime(left) - spillTime(right))
  for (const name of artifacts.slice(0, artifacts.length - keep)) {
    await unlink(folder.at(name)).catch((error: unknown) => {
      // Another call was faster, or the file cannot be removed: an additional file does no harm.
      if (!isSystemError(error)) throw error
    })
  }
}

function spillTime(name: string): number {
  return Number(ARTIFACT_NAME.exec(name)?.[2] ?? 0)
}

/** A saved output is written once, about the time in its name. In ms. */
const MAX_TIME_DIFFERENCE = 3_600_000

/** Removes the file of a saved output. False if there is no file, or if its name and age are not those of one. */
export async function removeSavedOutput(path: string): Promise<boolean> {
  if (!isAbsolute(path) || !ARTIFACT_NAME.test(basename(path))) return false
  try {
    const stats = await lstat(path)
    if (!stats.isFile() || Math.abs(stats.mtimeMs - spillTime(basename(path))) > MAX_TIME_DIFFERENCE) return false
    await unlink(path)
    return true
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return false
    throw error
  }
}
