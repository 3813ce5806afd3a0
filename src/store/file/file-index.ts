import { appendFileSync, closeSync, openSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { invalidCursor } from '../list-query.js'
import { readNow } from './log-file.js'

/** What the index says of a log. */
export interface IndexEntry {
  /** The state of the log's files to which it belongs: it is nothing for any other. */
  readonly stamp: string
  /** Of a run; `unreadable`: the log has to be read. */
  readonly phase: string
  /** The time of its place in a list. */
  readonly time: string
  /** Its summary without its owner: JSON. */
  readonly text: string
}

/** Turns the text of an entry into what the file holds of it; back null for what it cannot read. */
export interface TextCodec {
  readonly encode: (text: string, name: string, stamp: string) => string
  readonly decode: (stored: string, name: string, stamp: string) => string | null
}

export interface PlacedEntry extends IndexEntry {
  /** Where its line is, or was, in the index: the order in which changes were noticed. */
  readonly position: number
  /** A random text of those that were added together: a position is given again when the file is cut, or an older copy comes back. */
  readonly mark: string
}

const FILE = '.index'
const FIRST_LINE = 'thinharness-index 3 '
/** It is written anew when it is longer than this and than so many times what counts in it, in bytes. */
const SHORT_BYTES = 1 << 20
const TIMES = 3
/** So many bytes before those that were added are read again: whether the file is still the one that was read. */
const READ_AGAIN_BYTES = 512
/** When a file that was to replace it counts as left by a process that has ended, in ms. */
const LEFT_AFTER_MS = 60_000

/**
 * Summaries of the logs in a folder, in one file of lines that is only appended to. It is a copy: an entry holds while the files of its
 * log are as they were, and what is missing, torn or behind is read from the log. A line counts later than those before it, so
 * their places are the order in which changes were noticed.
 */
export class FileIndex {
  readonly #folder: string
  readonly #path: string
  readonly #isThere: (name: string) => boolean
  readonly #codec: TextCodec
  readonly #readOnly: boolean
  readonly #entries = new Map<string, PlacedEntry>()
  /** The mark of what was last at each position, for cursors. */
  readonly #marks = new Map<number, string>()
  #file = ''
  /** Bytes of the file that were read, the last of them, and the bytes of the entries. */
  #read = 0
  #lastBytes = Buffer.alloc(0)
  #counted = 0
  /** Named anew whenever the file is made anew: places are compared within one. */
  #generation = ''
  /** The one before, whose places up to `#base` count here too; lines of this one begin there. */
  #previous = ''
  #base = 0
  /** The folder cannot be written to: the index is only in memory. */
  #isDetached = false

  /** `isThere`: whether there is a log of this name. */
  constructor(
    folder: string,
    isThere: (name: string) => boolean,
    { readOnly, ...codec }: TextCodec & { readonly readOnly: boolean },
  ) {
    this.#readOnly = readOnly
    this.#folder = folder
    this.#path = join(folder, FILE)
    this.#isThere = isThere
    this.#codec = codec
  }

  get exists(): boolean {
    return this.#isDetached || statSync(this.#path, { throwIfNoEntry: false }) !== undefined
  }

  /** The entry of a log whose files are as the stamp says. */
  find(name: string, stamp: string): PlacedEntry | null {
    const entry = this.#entries.get(name)
    return entry?.stamp === stamp ? entry : null
  }

  /** The entries after a cursor, in their order. */
  after(cursor: string | null): { readonly name: string; readonly entry: PlacedEntry }[] {
    const position = this.#positionOf(cursor)
    return [...this.#entries]
      .flatMap(([name, entry]) => (entry.position > position ? [{ name, entry }] : []))
      .sort((left, right) => left.entry.position - right.entry.position)
  }

  cursorOf(entry: PlacedEntry | null): string {
    return entry === null ? UNKNOWN : `${this.#generation}.${entry.position}.${entry.mark}`
  }

  /** Adds entries, for all readers. Nothing depends on it: a file that cannot be written is done without. */
  add(entries: ReadonlyMap<string, IndexEntry>): void {
    if (entries.size === 0) return
    const mark = newName().slice(0, MARK_LENGTH)
    const lines = [...entries].map(([name, entry]) =>
      this.#lineOf(name, entry, this.#placeOf(name, entry) ?? `-${mark}`),
    )
    try {
      if (this.#isDetached || this.#readOnly) throw new Error('The index is in memory.')
      if (!this.exists) this.#create('', 0, '')
      // The break comes first: a process may have ended within the line before.
      appendFileSync(this.#path, `\n${lines.join('\n')}\n`)
    } catch {
      this.#detach()
      for (const line of lines) this.#take(line, (this.#base += 1))
    }
  }

  /** A log that says what it said has not changed: it was claimed. */
  #placeOf(name: string, { text }: IndexEntry): string | null {
    const known = this.#entries.get(name)
    return known?.text === text ? placeText(known) : null
  }

  /** Reads what was added, by whatever process. `count`: how many logs there are. */
  update(count = Infinity): void {
    if (this.#isDetached) return
    const stats = statSync(this.#path, { throwIfNoEntry: false })
    const file = stats === undefined ? '' : `${stats.dev}:${stats.ino}:${stats.birthtimeMs}`
    if (file !== this.#file || (stats?.size ?? 0) < this.#read) this.#forget()
    this.#file = file
    if (stats === undefined || stats.size === this.#read) return
    const bytes = this.#readAdded(stats.size)
    if (bytes === null) return this.#detach()
    for (let start = 0, end = bytes.indexOf(10); end >= 0; start = end + 1, end = bytes.indexOf(10, start))
      this.#takeFromFile(bytes.toString('utf8', start, end), end - start)
    const isLong = this.#read > SHORT_BYTES && this.#read > TIMES * this.#counted
    if (this.#generation !== '' && !isLong && this.#entries.size <= 2 * count + 1000) return
    const isNameless = this.#generation === ''
    if (this.#readOnly && isNameless) return this.#detach()
    this.#writeAnew()
    // Cursors name the file as it is now.
    if (isNameless) this.update()
  }

  /** The bytes after those that were read, from the beginning if those are others now; null if it cannot be read. */
  #readAdded(size: number): Buffer | null {
    const known = this.#lastBytes
    let bytes = readNow(this.#path, this.#read - known.length, size)
    if (bytes?.subarray(0, known.length).equals(known) === false) {
      this.#forget()
      bytes = readNow(this.#path, 0, size)
    } else bytes = bytes?.subarray(known.length) ?? null
    const end = (bytes?.lastIndexOf(10) ?? -1) + 1
    if (end > 0) this.#lastBytes = Buffer.from(bytes?.subarray(Math.max(0, end - READ_AGAIN_BYTES), end) ?? [])
    return bytes
  }

  /** Writes it in the present form of its texts. */
  renew(): void {
    this.update()
    this.#writeAnew()
  }

  /** Forgets, also on the disk, what it has of logs that are gone. */
  forgetGone(): void {
    this.update()
    if ([...this.#entries.keys()].some((name) => !this.#isThere(name))) this.#writeAnew()
  }

  #takeFromFile(line: string, length: number): void {
    const position = this.#base + this.#read
    this.#read += length + 1
    if (!line.slice(line.indexOf(' ') + 1).startsWith(FIRST_LINE)) return this.#take(line, position)
    const [generation = '', previous = '', base = ''] = intact(line)?.slice(FIRST_LINE.length).split(' ') ?? []
    ;[this.#generation, this.#previous, this.#base] = [generation, previous, Number(base)]
  }

  #take(line: string, position: number): void {
    const fields = intact(line)
    if (fields === null) return
    const head = fields.split(' ', HEAD)
    const [name = '', stamp = '', given = '', phase = '', time = ''] = head
    const stored = fields.slice(head.join(' ').length + 1)
    const text = this.#codec.decode(stored, name, stamp)
    if (text === null) return
    const before = this.#entries.get(name)
    if (before?.stamp === stamp && before.phase === phase) return
    this.#counted += text.length - (before?.text.length ?? 0)
    const [digits, mark = ''] = given.split('-')
    const place = digits === '' ? position : Number(digits)
    this.#entries.set(name, { stamp, phase, time, text, position: place, mark })
    this.#marks.set(place, mark)
  }

  #lineOf(name: string, { stamp, phase, time, text }: IndexEntry, place: string): string {
    const stored = this.#codec.encode(text, name, stamp)
    return checked(`${name} ${stamp} ${place} ${phase} ${time} ${stored}`)
  }

  /** Without lines that no longer count, and logs that are gone. The places of the others stay. */
  #writeAnew(): void {
    if (this.#readOnly) return
    for (const name of [...this.#entries.keys()]) if (!this.#isThere(name)) this.#entries.delete(name)
    const lines = [...this.#entries].map(([name, entry]) => `${this.#lineOf(name, entry, placeText(entry))}\n`)
    try {
      this.#create(this.#generation, this.#base + this.#read, lines.join(''))
      this.#removeLeft()
    } catch {
      // What is gone must not stay in it.
      rmSync(this.#path, { recursive: true, force: true })
    }
  }

  /** Makes the file in one step, in place of the one of generation `previous`, if any. */
  #create(previous: string, base: number, lines: string): void {
    const written = `${this.#path}-${newName()}`
    const fd = openSync(written, 'wx', 0o600)
    try {
      writeFileSync(fd, `${checked(`${FIRST_LINE}${newName()} ${previous} ${base}`)}\n${lines}`)
    } finally {
      closeSync(fd)
    }
    renameSync(written, this.#path)
  }

  #removeLeft(): void {
    for (const name of readdirSync(this.#folder)) {
      const path = join(this.#folder, name)
      const stats = name.startsWith(`${FILE}-`) ? statSync(path, { throwIfNoEntry: false }) : undefined
      if (stats !== undefined && stats.mtimeMs < Date.now() - LEFT_AFTER_MS) rmSync(path, { force: true })
    }
  }

  #positionOf(cursor: string | null): number {
    if (cursor === null) return -1
    const [, generation, digits, mark] = /^([0-9a-f]+)\.(\d+)(?:\.([0-9a-f]*))?$/.exec(cursor) ?? []
    if (generation === undefined) throw invalidCursor(cursor)
    const position = Number(digits)
    if (this.#marks.get(position) !== mark) return -1
    if (generation === this.#generation) return position
    return generation === this.#previous && position < this.#base ? position : -1
  }

  #detach(): void {
    if (this.#isDetached) return
    this.#isDetached = true
    this.#base += this.#read
    this.#generation = newName()
    this.#previous = ''
  }

  #forget(): void {
    this.#entries.clear()
    this.#marks.clear()
    this.#lastBytes = Buffer.alloc(0)
    ;[this.#read, this.#counted, this.#base] = [0, 0, 0]
    ;[this.#generation, this.#previous] = ['', '']
  }
}

/** The cursor of a log that the index does not know yet: all come after it. */
const UNKNOWN = '0.0'
/** Fields of a line before the summary. */
const HEAD = 5
const MARK_LENGTH = 8

/** The place of an entry in a line that is written again; a new line has only a mark: its place is where it is. */
function placeText({ position, mark }: PlacedEntry): string {
  return `${position}-${mark}`
}

/** A line with a checksum in front. */
function checked(fields: string): string {
  return `${crc32(fields)} ${fields}`
}

/** What follows the checksum of a line; null for a line that is torn, damaged, or two in one. */
function intact(line: string): string | null {
  const end = line.indexOf(' ')
  const fields = line.slice(end + 1)
  return end > 0 && Number(line.slice(0, end)) === crc32(fields) ? fields : null
}

function newName(): string {
  return globalThis.crypto.randomUUID().replaceAll('-', '')
}
