import { closeSync, existsSync, fstatSync, openSync, readdirSync } from 'node:fs'
import { readFileSync, readSync, renameSync, rmdirSync, statSync, unlinkSync, utimesSync, writeSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { endOwner, hasEnded } from '#util/platform/owner.js'
import { jsonObjectIn } from '#util/json.js'
import { makeFolder } from './file-paths.js'
import { mendTail } from './log-file.js'
import type { LogRef } from '#core/log/ref.js'
import type { RecordCodec } from '../codec/log-codec.js'

/** How long a lease file without content counts as a lease, in ms: its owner is about to write it. */
const BEING_WRITTEN_MS = 5000
/** How often a claim is tried again because another process was claiming at the same time. */
const ATTEMPTS = 20
const COPY_BYTES = 1 << 20

/** How the file of a log is replaced. */
export interface LogCopy {
  readonly ref: LogRef
  readonly codec: RecordCodec
  readonly sync: (fd: number) => void
}

interface LeaseText {
  readonly owner: string
  readonly ttlMs: number
}

/**
 * A claim on a run's file: a numbered file in a folder next to it, which contains the owner and how long the claim lasts
 * from its time of modification. A process that takes over a run creates the file with the next number, and removes the
 * others. So a lease is valid as long as its file has its name, which one `stat` shows.
 * See docs/decisions/0010-who-owns-a-run.md.
 */
export class FileLease {
  readonly owner: string
  readonly #folder: string
  readonly #name: string
  readonly #path: string
  readonly #ttlMs: number
  /** Identify the file of the lease: a later one may have its name. */
  readonly #inode: number
  /** Of the folder that the log is in. */
  readonly #place: string
  #mtimeMs: number
  /** The file that will become the log: created with the lease, so that it is removed with it. */
  #copy: { readonly name: string; readonly fd: number } | null = null

  private constructor(folder: string, name: string, text: LeaseText) {
    this.owner = text.owner
    this.#folder = folder
    this.#name = name
    this.#path = join(folder, name)
    this.#ttlMs = text.ttlMs
    this.#place = placeOf(folder)
    const fd = openSync(this.#path, 'wx', 0o600)
    try {
      writeSync(fd, JSON.stringify(text))
      const { ino, mtimeMs } = fstatSync(fd)
      this.#inode = ino
      this.#mtimeMs = mtimeMs
    } catch (error) {
      removeIfThere(this.#path)
      throw error
    } finally {
      closeSync(fd)
    }
  }

  /** Takes the lease in `folder` on the log at `logPath`; null if another owner has it. */
  static take(folder: string, text: LeaseText, logPath: string): FileLease | null {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const seen = foundLeases(folder)
      if (seen.some((lease) => lease.owner !== text.owner && isHeld(lease))) return null
      const lease = FileLease.#create(folder, Math.max(0, ...seen.map(({ number }) => number)) + 1, text)
      if (lease === null) continue
      try {
        if (seen.length > 0 || existsSync(logPath)) lease.#prepareCopy()
        if (lease.stands && lease.#isAlone()) {
          lease.#removeOthers()
          return lease
        }
      } catch (error) {
        lease.release()
        throw error
      }
      lease.release()
    }
    return null
  }

  static #create(folder: string, number: number, text: LeaseText): FileLease | null {
    makeFolder(folder)
    try {
      return new FileLease(folder, `${number}`, text)
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      // Another process was faster, or has just removed the folder.
      if (code === 'EEXIST' || code === 'ENOENT') return null
      throw error
    }
  }

  /** True if it has not been taken over. No descriptor stays open for it: there may be many runs. */
  get stands(): boolean {
    const stats = statSync(this.#path, { throwIfNoEntry: false })
    if (stats?.ino !== this.#inode) return false
    return stats.mtimeMs === this.#mtimeMs || storedLease(this.#path)?.owner === this.owner
  }

  /** The folder that the log is in was removed, moved or replaced. */
  get hasLostFolder(): boolean {
    return placeOf(this.#folder) !== this.#place
  }

  /** Extends it to `ttlMs` from now. False if it has been taken over. */
  renew(ttlMs: number): boolean {
    if (!this.stands) return false
    const now = Date.now()
    utimesSync(this.#path, now / 1000, (now + ttlMs - this.#ttlMs) / 1000)
    this.#mtimeMs = statSync(this.#path).mtimeMs
    return this.#isAlone()
  }

  /**
   * Replaces the log's file by a copy of its complete records: a former owner that was suspended with the old file open
   * then writes into a file without a name. False if the run was taken over in the meantime: then the copy has no name.
   */
  replaceLog(logPath: string, { ref, codec, sync }: LogCopy): boolean {
    if (this.#copy === null) return true
    const { fd, name } = this.#copy
    try {
      if (!copyInto(fd, logPath)) return true
      mendTail(fd, ref, codec)
      sync(fd)
      renameSync(join(this.#folder, name), logPath)
      return true
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false
      throw error
    } finally {
      this.#dropCopy()
    }
  }

  /** Releases it. */
  release(): void {
    this.#dropCopy()
    try {
      if (this.stands) removeIfThere(this.#path)
      // Wherever it is now, or a copy of it.
      else endOwner(this.owner)
      rmdirSync(this.#folder)
    } catch {
      // Another process has claimed it, or left a file there, which the next claim removes.
    }
  }

  #prepareCopy(): void {
    const name = `log-${globalThis.crypto.randomUUID()}`
    this.#copy = { name, fd: openSync(join(this.#folder, name), 'ax+', 0o600) }
  }

  #dropCopy(): void {
    if (this.#copy === null) return
    removeIfThere(join(this.#folder, this.#copy.name))
    closeSync(this.#copy.fd)
    this.#copy = null
  }

  /** A process that began before this one may finish later: each gives up if it sees another. */
  #isAlone(): boolean {
    return !foundLeases(this.#folder, this.#name).some((lease) => lease.owner !== this.owner && isHeld(lease))
  }

  #removeOthers(): void {
    const kept = [this.#name, this.#copy?.name]
    for (const name of readdirSync(this.#folder)) if (!kept.includes(name)) removeIfThere(join(this.#folder, name))
  }
}

/** Identifies the folder that the folder of a lease is in. */
function placeOf(folder: string): string {
  const stats = statSync(dirname(folder), { throwIfNoEntry: false })
  return stats === undefined ? '' : `${stats.dev}:${stats.ino}`
}

/** True if the log of the folder has been claimed, even if that claim has expired. */
export function isClaimed(folder: string): boolean {
  return statSync(folder, { throwIfNoEntry: false }) !== undefined && foundLeases(folder).length > 0
}

/** The owner whose claim has not expired, and whose process is not known to have ended. */
export function leaseOwner(folder: string): string | null {
  return foundLeases(folder).find(isHeld)?.owner ?? null
}

interface FoundLease extends LeaseText {
  readonly number: number
  readonly sinceMs: number
}

/** The leases in a folder but that of the name `own`. */
function foundLeases(folder: string, own?: string): FoundLease[] {
  return leaseNames(folder).flatMap((name) => {
    if (name === own || !/^\d+$/.test(name)) return []
    const path = join(folder, name)
    const stat = statSync(path, { throwIfNoEntry: false })
    const text = stat === undefined ? undefined : storedLease(path)
    return stat === undefined || text === undefined ? [] : [{ ...text, number: Number(name), sinceMs: stat.mtimeMs }]
  })
}

function leaseNames(folder: string): readonly string[] {
  try {
    return readdirSync(folder)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}

function storedLease(path: string): LeaseText | undefined {
  try {
    const { owner, ttlMs } = jsonObjectIn(readFileSync(path, 'utf8'))
    if (typeof owner === 'string' && typeof ttlMs === 'number') return { owner, ttlMs }
    return { owner: '', ttlMs: BEING_WRITTEN_MS }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

function isHeld({ owner, ttlMs, sinceMs }: FoundLease): boolean {
  return sinceMs + ttlMs > Date.now() && !hasEnded(owner)
}

/** Copies the content of a file; false if it does not exist. */
function copyInto(target: number, path: string): boolean {
  if (!existsSync(path)) return false
  const source = openSync(path, 'r')
  try {
    let left = fstatSync(source).size
    const buffer = Buffer.alloc(Math.min(COPY_BYTES, left))
    while (left > 0) {
      const length = readSync(source, buffer, 0, Math.min(buffer.length, left), null)
      if (length === 0) break
      left -= length
      for (let written = 0; written < length;) written += writeSync(target, buffer, written, length - written)
    }
    return true
  } finally {
    closeSync(source)
  }
}

function removeIfThere(path: string): void {
  try {
    unlinkSync(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
}
