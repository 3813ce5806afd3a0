import { closeSync, constants, fstatSync, open as openCallback, openSync, read, readlinkSync } from 'node:fs'
import { lstat, mkdir, open, readlink, realpath, stat } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import type { BigIntStats, Stats } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { FileFailure, isSystemError, PathValidationError } from './file-failure.js'

const DESCRIPTORS = '/proc/self/fd'
const ATTEMPTS = 10

/** The root of all files that are opened, and the way to verify that the opened file is the one that was checked. */
export interface Ground {
  /** Absolute, links resolved. */
  readonly root: string
  /**
   * The system reports the true path of an open file, and an open folder can be the start of a path. Then replacing folders
   * by links cannot lead a call outside the root. Without it (not Linux, or no `/proc`), paths are compared before and after
   * opening, which leaves a short gap.
   */
  readonly descriptors: boolean
}

/** A folder that was verified to be at its path, for work on the files in it. */
export interface Folder {
  readonly path: string
  /** A path to an entry, which follows the open folder and not its name. */
  at(name: string): string
  /** Fails, so that `withResolved` tries again, if it is no longer at its path and changes could be made elsewhere. */
  confirm(): Promise<void>
  close(): Promise<void>
}

export interface OpenedFile {
  readonly path: string
  readonly handle: FileHandle
  readonly stats: BigIntStats
}

/** A file whose blocks can be read, such as a `FileHandle`. */
export interface ReadableFile {
  /** Reads from `position` of the file until `into` is full or the file ends. */
  read(into: Buffer, place: FilePlace): Promise<{ readonly bytesRead: number }>
}

interface FilePlace {
  /** In bytes. */
  readonly position: number
}

/** A file that was opened by `openListed`. */
export interface ListedFile extends ReadableFile {
  /** In bytes, at the time of opening. */
  readonly size: number
  close(): Promise<void> | void
}

/** The path was changed between check and opening: check again. */
class PathChanged extends PathValidationError {
  constructor() {
    super('path was changed while it was opened')
  }
}

/** True if `/proc` can be used to verify files in `root`. */
export function descriptorsWork(root: string): boolean {
  if (process.platform !== 'linux') return false
  let descriptor: number | undefined
  try {
    descriptor = openSync(root, constants.O_RDONLY | constants.O_DIRECTORY)
    return readlinkSync(`${DESCRIPTORS}/${descriptor}`) === root
  } catch {
    return false
  } finally {
    if (descriptor !== undefined) closeSync(descriptor)
  }
}

/**
 * Resolves a path and uses it; again if it was changed in between.
 * @throws PathValidationError if it keeps changing.
 */
export async function withResolved<T>(resolve: () => Promise<string>, use: (path: string) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    const path = await resolve()
    try {
      return await use(path)
    } catch (error) {
      if (!(error instanceof PathChanged) || attempt === ATTEMPTS) throw error
    }
  }
}

/**
 * Opens an existing regular file for reading; to be called within `withResolved`. A link, a folder, a pipe or a device
 * is rejected without waiting for it.
 * @param path Absolute, links resolved, allowed.
 */
export async function openFile(ground: Ground, path: string, shown: string): Promise<OpenedFile> {
  requireRegular(await lstat(path, { bigint: true }), shown)
  const handle = await openUnlinked(path, constants.O_RDONLY)
  try {
    if (!(await isAt(ground, handle, path))) throw new PathChanged()
    const stats = await handle.stat({ bigint: true })
    requireRegular(stats, shown)
    return { path, handle, stats }
  } catch (error) {
    await handle.close()
    throw error
  }
}

/**
 * Opens a regular file that was just listed, for reading very many of them: as safe as `openFile` at a quarter of its cost.
 * Only operations that can wait for a disk (opening, reading) use the thread pool.
 * @param path Absolute, links resolved, allowed.
 */
export async function openListed(ground: Ground, path: string): Promise<ListedFile> {
  if (!ground.descriptors) {
    const { handle, stats } = await openFile(ground, path, basename(path))
    return { size: Number(stats.size), read: (into, place) => handle.read(into, place), close: () => handle.close() }
  }
  const flags = constants.O_RDONLY | openFlag('O_NOFOLLOW') | openFlag('O_NONBLOCK')
  const descriptor = await promisify(openCallback)(path, flags).catch(rejectLink)
  try {
    if (readlinkSync(`${DESCRIPTORS}/${descriptor}`) !== path) throw new PathChanged()
    const stats = fstatSync(descriptor)
    requireRegular(stats, basename(path))
    return {
      size: stats.size,
      read: (into, place) => promisify(read)(descriptor, { buffer: into, ...place }),
      close: () => closeSync(descriptor),
    }
  } catch (error) {
    closeSync(descriptor)
    throw error
  }
}

/**
 * Opens a folder; with `create`, missing folders are created. To be called within `withResolved`.
 * @param path Absolute, links resolved, inside the root.
 */
export async function openFolder(ground: Ground, path: string, create = false): Promise<Folder> {
  return ground.descriptors ? openFolderHandle(ground, path, create) : comparedFolder(ground, path, create)
}

/** Opens a file in a verified folder, never through a link and never waiting for a pipe. */
export async function openIn(
  folder: Folder,
  name: string,
  { flags, mode }: { readonly flags: number; readonly mode?: number | undefined },
): Promise<FileHandle> {
  return openUnlinked(folder.at(name), flags, mode)
}

/** As `openIn`, for reading, in the same tick; returns a descriptor. */
export function openSyncIn(folder: Folder, name: string): number {
  try {
    return openSync(folder.at(name), constants.O_RDONLY | openFlag('O_NOFOLLOW') | openFlag('O_NONBLOCK'))
  } catch (error) {
    return rejectLink(error)
  }
}

/** An entry of a verified folder; `undefined` if there is none. */
export async function statIn(folder: Folder, name: string): Promise<BigIntStats | undefined> {
  try {
    return await lstat(folder.at(name), { bigint: true })
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return undefined
    throw error
  }
}

/** @throws FileFailure `PathTypeError`; `PathChanged` if a link has taken its place. */
export function requireRegular(stats: BigIntStats | Stats, shown: string): void {
  if (stats.isSymbolicLink()) throw new PathChanged()
  if (stats.isDirectory()) throw new FileFailure('PathTypeError', `path is a directory: ${shown}`)
  if (!stats.isFile()) throw new FileFailure('PathTypeError', `path is not a regular file: ${shown}`)
}

async function openUnlinked(path: string, flags: number, mode?: number): Promise<FileHandle> {
  return open(path, flags | openFlag('O_NOFOLLOW') | openFlag('O_NONBLOCK'), mode).catch(rejectLink)
}

function rejectLink(error: unknown): never {
  throw isSystemError(error, 'ELOOP', 'EMLINK') ? new PathChanged() : error
}

/** Windows does not have all of them. */
function openFlag(name: 'O_NOFOLLOW' | 'O_NONBLOCK' | 'O_DIRECTORY'): number {
  const flags: Partial<Record<string, number>> = constants
  return flags[name] ?? 0
}

async function isAt({ descriptors }: Ground, handle: FileHandle, path: string): Promise<boolean> {
  if (descriptors) return (await readlink(`${DESCRIPTORS}/${handle.fd}`)) === path
  const [real, there, opened] = await Promise.all([
    realpath(path),
    stat(path, { bigint: true }),
    handle.stat({ bigint: true }),
  ])
  return real === path && there.ino === opened.ino && there.dev === opened.dev
}

async function openFolderHandle(ground: Ground, path: string, create: boolean): Promise<Folder> {
  const handle = await openFolderAt(path, path).catch(async (error: unknown) => {
    if (!create || path === ground.root || !isSystemError(error, 'ENOENT')) throw error
    return createFolder(ground, path)
  })
  try {
    if (!(await isAt(ground, handle, path))) throw new PathChanged()
  } catch (error) {
    await handle.close()
    throw error
  }
  // All work uses the handle, and stays in this folder whatever happens to the path.
  const confirm = (): Promise<void> => Promise.resolve()
  return { path, at: (name) => `${DESCRIPTORS}/${handle.fd}/${name}`, confirm, close: () => handle.close() }
}

async function createFolder(ground: Ground, path: string): Promise<FileHandle> {
  const parent = await openFolderHandle(ground, dirname(path), true)
  try {
    await createIfMissing(parent.at(basename(path)))
    return await openFolderAt(parent.at(basename(path)), path)
  } finally {
    await parent.close()
  }
}

async function openFolderAt(at: string, path: string): Promise<FileHandle> {
  try {
    return await open(at, constants.O_RDONLY | openFlag('O_NOFOLLOW') | openFlag('O_DIRECTORY'))
  } catch (error) {
    if (!isSystemError(error, 'ELOOP', 'EMLINK', 'ENOTDIR')) throw error
    // If this fails, a folder further up is not a folder.
    const stats = await lstat(at).catch(() => undefined)
    if (stats?.isSymbolicLink() === true) throw new PathChanged()
    const name = basename(stats === undefined ? dirname(path) : path)
    throw new FileFailure('PathTypeError', `path is not a directory: ${name}`)
  }
}

async function comparedFolder(ground: Ground, path: string, create: boolean): Promise<Folder> {
  const stats = await lstat(path).catch(async (error: unknown) => {
    if (!create || path === ground.root || !isSystemError(error, 'ENOENT')) throw error
    await comparedFolder(ground, dirname(path), true)
    await createIfMissing(path)
    return lstat(path)
  })
  const confirm = async (): Promise<void> => {
    const now = await lstat(path)
    const isSame = now.ino === stats.ino && now.dev === stats.dev && (await realpath(path)) === path
    if (!isSame) throw new PathChanged()
  }
  await confirm()
  if (!stats.isDirectory()) throw new FileFailure('PathTypeError', `path is not a directory: ${basename(path)}`)
  return { path, at: (name) => join(path, name), confirm, close: () => Promise.resolve() }
}

async function createIfMissing(path: string): Promise<void> {
  await mkdir(path).catch((error: unknown) => {
    if (!isSystemError(error, 'EEXIST')) throw error
  })
}
