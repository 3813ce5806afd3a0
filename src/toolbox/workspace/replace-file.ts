import { constants, renameSync } from 'node:fs'
import type { BigIntStats } from 'node:fs'
import { unlink, lstat, readdir } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { Slots } from '#util/queue/slots.js'
import { FileFailure } from './file-failure.js'
import { openFolder, openIn, requireRegular, statIn } from './safe-open.js'
import type { Folder, Ground } from './safe-open.js'

const NEW_FILE_MODE = 0o666
/** Until a copy has the permissions of its original, nobody else may read it. */
const PRIVATE_MODE = 0o600
/** Without the bits by which a program gets the rights of the file's owner. */
const PERMISSIONS = 0o777n
const SET_ID_BITS = 0o6000n
const COPY_BYTES = 262_144

/** A regular file in a verified folder; need not exist. */
export interface WriteTarget {
  readonly folder: Folder
  readonly name: string
  /** Its path as the model knows it. */
  readonly shown: string
  readonly signal: AbortSignal
}

export interface TargetRequest {
  /** Absolute, links resolved, allowed. */
  readonly path: string
  readonly shown: string
  readonly signal: AbortSignal
  /** Create missing folders above it. Default false. */
  readonly create?: boolean
}

/** One at a time per path in this process: if two runs edit a file, the second reads the result of the first. */
const writers = new Slots(1)

/** Opens the folder of a file and works on the file; to be called within `withResolved`. One call at a time per file. */
export async function withTarget<T>(
  ground: Ground,
  { path, shown, signal, create = false }: TargetRequest,
  use: (target: WriteTarget) => Promise<T>,
): Promise<T> {
  // The folder of the root is outside.
  if (path === ground.root) throw new FileFailure('PathTypeError', `path is a directory: ${shown}`)
  return writers.within(path, signal, async () => {
    const folder = await openFolder(ground, dirname(path), create)
    try {
      return await use({ folder, name: basename(path), shown, signal })
    } finally {
      await folder.close()
    }
  })
}

/**
 * The existing file; `undefined` if there is none.
 * @throws FileFailure if it is not a regular file, or read-only.
 */
export async function writableStats({ folder, name, shown }: WriteTarget): Promise<BigIntStats | undefined> {
  const stats = await statIn(folder, name)
  if (stats === undefined) return undefined
  requireRegular(stats, shown)
  // Renaming over it requires no permission for the file itself, and the superuser needs no permission at all.
  if ((stats.mode & 0o222n) === 0n) throw new FileFailure('EACCES', `file is read-only: ${shown}`)
  return stats
}

/**
 * Replaces a file in one step: readers see the old text or the new one, also after a crash. Permissions and owner of the old
 * file are kept, set-user-ID bits are not; a hard link to it elsewhere keeps the old text.
 * @param requireUnchanged Called in the same tick as the step, just before it; if it throws, the old file stays.
 */
export async function replaceFile(
  target: WriteTarget,
  old: BigIntStats | undefined,
  {
    write,
    requireUnchanged = () => undefined,
  }: { readonly write: (file: FileHandle) => Promise<void>; readonly requireUnchanged?: () => void },
): Promise<void> {
  const { folder, name, signal } = target
  await sweepTemporaryFiles(folder)
  const temporary = temporaryName()
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL
  const file = await openIn(folder, temporary, { flags, mode: old === undefined ? NEW_FILE_MODE : PRIVATE_MODE })
  try {
    try {
      await write(file)
      if (old !== undefined) await keepOwnerAndMode(file, old)
    } finally {
      await file.close()
    }
    signal.throwIfAborted()
    await folder.confirm()
    requireUnchanged()
    renameSync(folder.at(temporary), folder.at(name))
  } catch (error) {
    await unlink(folder.at(temporary)).catch(() => undefined)
    throw error
  }
}

/** Appends to a file, or creates it. */
export async function appendToFile(target: WriteTarget, bytes: Buffer): Promise<void> {
  const old = await writableStats(target)
  const { folder, name, shown } = target
  const file = await openIn(folder, name, {
    flags: constants.O_RDWR | constants.O_APPEND | constants.O_CREAT,
    mode: NEW_FILE_MODE,
  })
  try {
    const stats = await file.stat({ bigint: true })
    requireRegular(stats, shown)
    await folder.confirm()
    // The file may have another name anywhere: that one keeps its content.
    if (stats.nlink === 1n) {
      if ((stats.mode & SET_ID_BITS) !== 0n) await file.chmod(Number(stats.mode & PERMISSIONS))
      await file.appendFile(bytes)
    } else {
      await replaceFile(target, old ?? stats, {
        write: async (copy) => {
          await copyFile(file, copy, target.signal)
          await copy.appendFile(bytes)
        },
      })
    }
  } finally {
    await file.close()
  }
}

/** The owner is kept if the process may change it, which only the superuser may. */
async function keepOwnerAndMode(file: FileHandle, old: BigIntStats): Promise<void> {
  const { uid, gid } = await file.stat({ bigint: true })
  if (uid !== old.uid || gid !== old.gid) await file.chown(Number(old.uid), Number(old.gid)).catch(() => undefined)
  await file.chmod(Number(old.mode & PERMISSIONS))
}

async function copyFile(from: FileHandle, to: FileHandle, signal: AbortSignal): Promise<void> {
  const buffer = Buffer.allocUnsafe(COPY_BYTES)
  for (let position = 0; ;) {
    signal.throwIfAborted()
    const { bytesRead } = await from.read(buffer, 0, COPY_BYTES, position)
    if (bytesRead === 0) return
    await to.appendFile(buffer.subarray(0, bytesRead))
    position += bytesRead
  }
}

const TEMPORARY = /^\.thinharness-[0-9a-f-]{36}\.tmp$/
/** A file that was not written to for longer is left over: its process was killed. */
const LEFT_OVER_MS = 3_600_000
const MOST_FOLDERS = 1_000

/** When folders were swept last, by their paths. */
const swept = new Map<string, number>()

/** A name that no other file has. */
function temporaryName(): string {
  return `.thinharness-${globalThis.crypto.randomUUID()}.tmp`
}

/** Removes the temporary files that killed processes left in a folder; looks at most once an hour. Never rejects. */
async function sweepTemporaryFiles(folder: Folder): Promise<void> {
  const now = Date.now()
  if (now - (swept.get(folder.path) ?? 0) < LEFT_OVER_MS) return
  if (swept.size >= MOST_FOLDERS) swept.clear()
  swept.set(folder.path, now)
  const names = await readdir(folder.at('.')).catch(() => [])
  for (const name of names.filter((name) => TEMPORARY.test(name))) {
    const stats = await lstat(folder.at(name)).catch(() => undefined)
    if (stats?.isFile() !== true || now - stats.mtimeMs < LEFT_OVER_MS) continue
    await unlink(folder.at(name)).catch(() => undefined)
  }
}
