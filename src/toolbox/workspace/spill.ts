import { createHash } from 'node:crypto'
import { constants } from 'node:fs'
import { readdir, unlink } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { JsonObject } from '../../util/json.js'
import { characterCount, firstCharacters, isLonger, lastCharacters } from '../../util/characters.js'
import { fileFailureOf, isSystemError } from './failure.js'
import { openFolder, openIn } from './safe-open.js'
import type { Folder } from './safe-open.js'
import type { Workspace } from './workspace.js'

/** How much of an artifact its name vouches for. */
const SEALED_BYTES = 65_536
const ARTIFACT_NAME = /^([a-z_]+)-(\d{1,16})-([0-9a-f]{8})\.txt$/

export interface SpillRequest {
  readonly text: string
  /** What the artifact's name begins with: the tool's name, small letters and `_`. */
  readonly prefix: string
  /** Longest text that is given as it is, in characters. */
  readonly limit: number
}

export interface Spilled {
  readonly content: string
  /** Empty when the text was short enough. */
  readonly metadata: JsonObject
}

/**
 * Text for a model: as it is, or where it is longer than the limit its beginning and end, with the whole kept in a file of
 * `outputDir` that `read` may read whatever the read paths are. A file that cannot be written does not fail
 * the call: the model is told that the middle is lost.
 */
export async function spill(workspace: Workspace, { text, prefix, limit }: SpillRequest): Promise<Spilled> {
  if (!isLonger(text, limit)) return { content: text, metadata: {} }
  const chars = characterCount(text)
  const head = Math.floor(limit / 2)
  const excerpt = `${firstCharacters(text, head)}\n...\n${lastCharacters(text, limit - head)}`
  const sizes = `The output has ${chars} characters, more than the limit of ${limit}.`
  try {
    const path = await save(workspace, prefix, text)
    const shown = workspace.display(path)
    const guidance = `Call \`read\` with path \`${shown}\` and offset=1, then go on with later offsets.`
    return {
      content: `${sizes} Its full text is in ${shown}.\n${guidance}\n${excerpt}`,
      metadata: { truncated: true, saved_to: path, saved_to_display: shown, chars },
    }
  } catch (error) {
    const failure = fileFailureOf(error)
    if (failure === undefined) throw error
    const lost = `The full text could not be saved: ${failure.message}. Narrow the call to see the rest.`
    return { content: `${sizes}\n${lost}\n${excerpt}`, metadata: { truncated: true, chars } }
  }
}

/** Whether a path has the place and the name of an artifact; what it holds is for `isArtifact` to say. */
export function mayBeArtifact(workspace: Workspace, path: string): boolean {
  return dirname(path) === workspace.outputDir && ARTIFACT_NAME.test(basename(path))
}

/**
 * Whether an open file is what `spill` wrote under this name, in this process or an earlier one: the digits at the end
 * of its name are made from what it holds, so that nothing but its own folder has to be remembered.
 */
export async function isArtifact(name: string, file: FileHandle): Promise<boolean> {
  const [, prefix, time, seal] = ARTIFACT_NAME.exec(name) ?? []
  if (prefix === undefined || time === undefined) return false
  const { size } = await file.stat()
  const beginning = Buffer.alloc(Math.min(size, SEALED_BYTES))
  const { bytesRead } = await file.read(beginning, 0, beginning.length, 0)
  return sealOf(prefix, time, { size, beginning: beginning.subarray(0, bytesRead) }) === seal
}

async function save(workspace: Workspace, prefix: string, text: string): Promise<string> {
  const folder = await openFolder(workspace, workspace.outputDir, true)
  try {
    const name = await writeNew(folder, prefix, Buffer.from(text))
    await removeOldest(folder, workspace.limits.maxOutputFiles)
    return join(folder.path, name)
  } finally {
    await folder.close()
  }
}

/** Two calls in one millisecond with one text would have one name: the second takes the next millisecond's. */
async function writeNew(folder: Folder, prefix: string, bytes: Buffer): Promise<string> {
  for (let time = Date.now(); ; time++) {
    const seal = sealOf(prefix, String(time), { size: bytes.length, beginning: bytes.subarray(0, SEALED_BYTES) })
    const name = `${prefix}-${time}-${seal}.txt`
    try {
      const file = await openIn(folder, name, {
        flags: constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL,
        mode: 0o600,
      })
      await writeOrRemove(folder, name, { file, bytes })
      return name
    } catch (error) {
      if (!isSystemError(error, 'EEXIST')) throw error
    }
  }
}

/** Half a file has not the seal that its name tells of: nobody would ever remove it. */
async function writeOrRemove(
  folder: Folder,
  name: string,
  { file, bytes }: { readonly file: FileHandle; readonly bytes: Buffer },
): Promise<void> {
  try {
    await file.writeFile(bytes)
  } catch (error) {
    await unlink(folder.at(name))
    throw error
  } finally {
    await file.close()
  }
}

function sealOf(
  prefix: string,
  time: string,
  { size, beginning }: { readonly size: number; readonly beginning: Buffer },
): string {
  return createHash('sha256').update(`${prefix}-${time}-${size}\n`).update(beginning).digest('hex').slice(0, 8)
}

/** Only what is an artifact by name and content is removed: the folder may be shared with other files. */
async function removeOldest(folder: Folder, keep: number): Promise<void> {
  const artifacts = (await readdir(folder.at('.'))).filter((name) => ARTIFACT_NAME.test(name))
  if (artifacts.length <= keep) return
  artifacts.sort((left, right) => timeOf(left) - timeOf(right))
  for (const name of artifacts.slice(0, artifacts.length - keep)) await removeArtifact(folder, name)
}

function timeOf(name: string): number {
  return Number(ARTIFACT_NAME.exec(name)?.[2] ?? 0)
}

async function removeArtifact(folder: Folder, name: string): Promise<void> {
  try {
    const file = await openIn(folder, name, { flags: constants.O_RDONLY })
    try {
      if (!(await file.stat()).isFile() || !(await isArtifact(name, file))) return
    } finally {
      await file.close()
    }
    await unlink(folder.at(name))
  } catch (error) {
    // Another call was faster, or the file may not be removed: a file too many does no harm.
    if (fileFailureOf(error) === undefined) throw error
  }
}
