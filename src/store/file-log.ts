import { fstatSync, unlinkSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { HarnessError } from '../contracts/errors.js'
import { invalidOptions, parse } from '../contracts/parse.js'
import { oneOf, partial } from '../util/shape.js'
import type { DurableEvent } from '../run/machine/events.js'
import { FileLease, isClaimed, isInHand } from './file-lease.js'
import { fileNameOf, runIdOf } from './file-name.js'
import { comparePlaces, listFilter, prunables, removable } from '../run/log/listing.js'
import type { ListOptions, ListPlace, Prunable, PruneOptions } from '../run/log/listing.js'
import { checkClaim, ownedByAnother, storeFailure } from '../run/log/log.js'
import type { RunStore } from '../run/log/log.js'
import { newOwner } from '../run/log/owner.js'
import { readEvents, readFirst } from './read-file.js'
import { RunFile } from './run-file.js'
import type { WriteCheck } from './run-file.js'
import { summarize } from '../run/log/summary.js'
import type { RunSummary } from '../run/log/summary.js'

export interface FileLogOptions {
  /**
   * What survives. A crash of the process loses nothing in any case: each event has been handed to the operating system.
   * - `always`: nor does a crash of the machine; every append waits for the disk.
   * - `interval` (default): a crash of the machine loses at most the last second.
   * - `never`: a crash of the machine loses what the operating system had not yet written by itself.
   */
  readonly fsync?: 'always' | 'interval' | 'never'
}

const OPTIONS = partial<FileLogOptions>({ fsync: oneOf('always', 'interval', 'never') })

/**
 * A log in a folder: one JSONL file for each run, named after its id, one event a line. A torn last line is no harm.
 * Any number of processes of one machine may share the folder; over a network file system claims are not promised.
 * Throws `invalid_options`.
 */
export function fileLog(folder: string, options: FileLogOptions = {}): RunStore {
  const { fsync = 'interval' } = parse(OPTIONS, options, '`fileLog`')
  if (typeof folder !== 'string' || folder === '')
    throw invalidOptions('Expected the folder of `fileLog` to be a path.')
  return new FileLog(resolve(folder), fsync)
}

/** How long a run that is being removed is held for that, in ms. */
const REMOVAL_MS = 60_000
/** Logs of which the beginnings are read together, for a list. */
const READ_TOGETHER = 64

class FileLog implements RunStore {
  readonly #folder: string
  readonly #fsync: NonNullable<FileLogOptions['fsync']>
  readonly #files = new Map<string, { readonly owner: string | undefined; readonly file: RunFile }>()
  readonly #leases = new Map<string, FileLease>()

  constructor(folder: string, fsync: NonNullable<FileLogOptions['fsync']>) {
    this.#folder = folder
    this.#fsync = fsync
  }

  async append(runId: string, events: readonly DurableEvent[], owner?: string): Promise<void> {
    if (events.length === 0) return
    const ends = events.some(({ kind }) => kind === 'run_completed' || kind === 'run_failed')
    try {
      const file = this.#open(runId, owner)
      file.append(events)
      if (this.#fsync === 'always' || (ends && this.#fsync === 'interval')) await file.sync()
      else if (this.#fsync === 'interval') file.syncSoon()
    } catch (error) {
      await this.#close(runId).catch(() => undefined)
      throw storeFailure(`keep an event of run \`${runId}\``, error)
    }
    if (ends) await this.#close(runId)
  }

  read(runId: string, from = 1): AsyncIterable<DurableEvent> {
    return readEvents(this.#pathOf(runId, 'jsonl'), runId, from)
  }

  async claim(runId: string, owner: string, ttlMs: number): Promise<boolean> {
    checkClaim(owner, ttlMs)
    try {
      return await (ttlMs === 0 ? this.#release(runId, owner) : this.#claim(runId, owner, ttlMs))
    } catch (error) {
      throw storeFailure(`claim run \`${runId}\``, error)
    }
  }

  inspect(runId: string): Promise<RunSummary | null> {
    return summarize(runId, this.read(runId), () => isInHand(this.#pathOf(runId, 'lease')))
  }

  /** A log that cannot be read is passed over: `inspect` says what is wrong with it. */
  async *list(options: ListOptions = {}): AsyncGenerator<RunSummary> {
    const wanted = listFilter(options)
    const { before } = options
    for (const place of (await this.#places()).sort(comparePlaces)) {
      if (before !== undefined && comparePlaces(before, place) >= 0) continue
      const summary = await unlessDamaged(this.inspect(place.runId))
      if (summary !== null && wanted(summary)) yield summary
    }
  }

  async prune(options: PruneOptions): Promise<number> {
    const chosen = removable(await prunables(this.list()), options, Date.now())
    let removed = 0
    for (const run of chosen) if (await this.#remove(run)) removed += 1
    return removed
  }

  #pathOf(runId: string, ending: 'jsonl' | 'lease'): string {
    return join(this.#folder, `${fileNameOf(runId)}.${ending}`)
  }

  #open(runId: string, owner: string | undefined): RunFile {
    const open = this.#files.get(runId)
    if (open !== undefined && open.owner === owner) return open.file
    const file = RunFile.open(this.#pathOf(runId, 'jsonl'), runId, this.#checkFor(runId, owner))
    this.#files.set(runId, { owner, file })
    return file
  }

  async #close(runId: string): Promise<void> {
    const open = this.#files.get(runId)
    this.#files.delete(runId)
    await open?.file.close()
  }

  /** Who has no claim may write while nobody has; and not into a file that a claim has replaced. */
  #checkFor(runId: string, owner: string | undefined): WriteCheck {
    const folder = this.#pathOf(runId, 'lease')
    const lease = this.#leases.get(runId)
    return (fd) => {
      const may =
        owner === undefined
          ? !isClaimed(folder) && (fd === null || fstatSync(fd).nlink > 0)
          : lease !== undefined && lease.owner === owner && lease.stands
      if (!may) throw ownedByAnother(runId, owner)
    }
  }

  async #claim(runId: string, owner: string, ttlMs: number): Promise<boolean> {
    const held = this.#leases.get(runId)
    if (held?.owner === owner) {
      if (held.renew(ttlMs)) return true
      await this.#letGo(runId, held)
      return false
    }
    const path = this.#pathOf(runId, 'jsonl')
    const lease = FileLease.take(this.#pathOf(runId, 'lease'), { owner, ttlMs }, path)
    if (lease === null) return false
    if (!replaceLog(lease, path, { runId, sync: this.#fsync !== 'never' })) return false
    // One of this process whose time was over.
    if (held !== undefined) await this.#letGo(runId, held)
    else await this.#close(runId)
    this.#leases.set(runId, lease)
    return true
  }

  async #release(runId: string, owner: string): Promise<boolean> {
    const held = this.#leases.get(runId)
    if (held?.owner !== owner) return !isClaimed(this.#pathOf(runId, 'lease'))
    await this.#letGo(runId, held)
    return true
  }

  async #letGo(runId: string, lease: FileLease): Promise<void> {
    this.#leases.delete(runId)
    try {
      await this.#close(runId)
    } finally {
      lease.release()
    }
  }

  /** The runs that have begun, and when. */
  async #places(): Promise<ListPlace[]> {
    const names = (await namesIn(this.#folder)).filter((name) => name.endsWith('.jsonl'))
    const places: ListPlace[] = []
    for (let start = 0; start < names.length; start += READ_TOGETHER) {
      const together = names.slice(start, start + READ_TOGETHER).map((name) => this.#placeOf(name))
      places.push(...(await Promise.all(together)).filter((place) => place !== null))
    }
    return places
  }

  async #placeOf(fileName: string): Promise<ListPlace | null> {
    const name = fileName.slice(0, -'.jsonl'.length)
    const first = await unlessDamaged(readFirst(join(this.#folder, fileName), name))
    return first === null || first === undefined ? null : { runId: runIdOf(name) ?? first.runId, startedAt: first.at }
  }

  /** False when it has gone on since it was chosen. */
  async #remove({ runId, lastSeq }: Prunable): Promise<boolean> {
    const path = this.#pathOf(runId, 'jsonl')
    const lease = FileLease.take(this.#pathOf(runId, 'lease'), { owner: newOwner(), ttlMs: REMOVAL_MS }, path)
    if (lease === null) return false
    try {
      if ((await this.inspect(runId))?.lastSeq !== lastSeq || !lease.stands) return false
      unlinkSync(path)
      return true
    } finally {
      lease.release()
    }
  }
}

function replaceLog(lease: FileLease, path: string, how: { readonly runId: string; readonly sync: boolean }): boolean {
  let replaced = false
  try {
    replaced = lease.replaceLog(path, how)
    return replaced
  } finally {
    if (!replaced) lease.release()
  }
}

/** Null in place of a log that is damaged, or that has been removed meanwhile. */
async function unlessDamaged<T>(reading: Promise<T>): Promise<T | null> {
  try {
    return await reading
  } catch (error) {
    const isDamaged = error instanceof HarnessError && error.code === 'invalid_log'
    if (isDamaged || (error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

async function namesIn(folder: string): Promise<readonly string[]> {
  try {
    return await readdir(folder)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}
