import { isObject } from '#util/json.js'
import type { JsonObject } from '#util/json.js'
import type { ContainerHeader, LogPart, PackedLog } from './container.js'
import type { ReadEvent } from './event-fields.js'
import type { Damage, EventPlace, RunNode } from './nodes.js'
import { Outline } from './outline.js'
import { skim } from './skim.js'

/** The text of a run's log: its lines as they were stored, and where they begin. */
export class LogText {
  /** The text of the log, and of each event that has come since. */
  #text: string
  readonly #from: number[] = []
  readonly #to: number[] = []
  /** The line of each stored event, by its number. */
  readonly #lines = new Map<number, number>()

  constructor(text: string) {
    this.#text = text
  }

  get text(): string {
    return this.#text
  }

  /** The number of the first event; null: there is none. */
  get firstSeq(): number | null {
    const [first] = this.#lines.keys()
    return first ?? null
  }

  /** How many lines have been read. */
  get length(): number {
    return this.#from.length
  }

  /** A line without its end, by its index from 0. */
  line(index: number): string {
    const [from, to] = [this.#from[index], this.#to[index]]
    return from === undefined || to === undefined ? '' : this.#text.slice(from, to)
  }

  /** The index of the line that holds a stored event; -1 if there is none. */
  indexOf(seq: number): number {
    return this.#lines.get(seq) ?? -1
  }

  /** The index of the line at a place of the text. */
  lineAt(offset: number): number {
    let [low, high] = [0, this.#from.length - 1]
    while (low < high) {
      const middle = (low + high + 1) >> 1
      if ((this.#from[middle] ?? 0) <= offset) low = middle
      else high = middle - 1
    }
    return low
  }

  /** The place behind a line. */
  ends(index: number): number {
    return this.#to[index] ?? this.#text.length
  }

  append(line: string): void {
    this.#text += `${line}\n`
  }

  /** Reads the lines that have not been read, in order; `onLine` gets those that are not empty. */
  read(onLine: (line: string, index: number) => ReadEvent | null): void {
    let from = this.#to.at(-1) ?? -1
    from += 1
    while (from < this.#text.length) {
      const end = this.#text.indexOf('\n', from)
      const to = end < 0 ? this.#text.length : end
      const index = this.#from.push(from) - 1
      this.#to.push(to)
      const event = from === to ? null : onLine(this.#text.slice(from, to), index)
      if (event !== null && event['durable'] !== false && !this.#lines.has(event.seq)) this.#lines.set(event.seq, index)
      from = to + 1
    }
  }
}

/** A run of a book, as far as it has been opened. */
interface OpenedRun {
  readonly log: LogText
  readonly outline: Outline
}

/**
 * All logs of a page. A log is read when its run is first asked for: one pass makes its outline, and an event is parsed in full when
 * somebody looks at it. The same object grows while a run goes on.
 *
 * @example
 * const { header, logs } = await readContainer(text)
 * const book = new Book(header, logs)
 * book.run('run_1')?.turns.length
 */
export class Book {
  readonly header: ContainerHeader
  readonly #packed = new Map<string, PackedLog>()
  readonly #opened = new Map<string, OpenedRun>()
  /** Ids of child runs, by that of their parent. */
  readonly #children = new Map<string, string[]>()
  /** Grows with each change: whatever was computed before may be old. */
  version = 0
  /** How many events were parsed in full. */
  parsed = 0

  constructor(header: ContainerHeader, logs: readonly PackedLog[]) {
    this.header = header
    for (const log of logs) this.#add(log)
  }

  #add(log: PackedLog): void {
    const { runId, parentRunId } = log.part
    this.#packed.set(runId, log)
    if (parentRunId !== undefined) this.#children.set(parentRunId, [...(this.#children.get(parentRunId) ?? []), runId])
  }

  /** What the list of runs shows: the runs without a parent in this book, in the order of the container. */
  get roots(): readonly LogPart[] {
    const parts = [...this.#packed.values()].map(({ part }) => part)
    return parts.filter(({ parentRunId }) => parentRunId === undefined || !this.#packed.has(parentRunId))
  }

  get runIds(): readonly string[] {
    return [...this.#packed.keys()]
  }

  has(runId: string): boolean {
    return this.#packed.has(runId)
  }

  part(runId: string): LogPart | null {
    return this.#packed.get(runId)?.part ?? null
  }

  /** The outline of a run; null if the book has no log of it. */
  run(runId: string): RunNode | null {
    return this.#open(runId)?.outline.node ?? null
  }

  /** The text of a run's log; null if the book has none. */
  log(runId: string): LogText | null {
    return this.#open(runId)?.log ?? null
  }

  /** The child runs of a run; with `callId` those that this call started. Oldest first. */
  childrenOf(runId: string, callId?: string): readonly RunNode[] {
    const nodes = (this.#children.get(runId) ?? []).flatMap((id) => this.run(id) ?? [])
    return callId === undefined ? nodes : nodes.filter(({ parentCallId }) => parentCallId === callId)
  }

  /** The event of a place, parsed in full; null if the log has none, or its line is broken. */
  event({ runId, seq }: EventPlace): (JsonObject & ReadEvent) | null {
    const log = this.log(runId)
    return log === null ? null : this.eventAt(runId, log.indexOf(seq))
  }

  /** The same by the index of its line. */
  eventAt(runId: string, line: number): (JsonObject & ReadEvent) | null {
    const text = this.log(runId)?.line(line) ?? ''
    if (text === '') return null
    this.parsed += 1
    try {
      const value: unknown = JSON.parse(text)
      return isEvent(value) ? value : null
    } catch {
      return null
    }
  }

  /** The number of the first event of a log; null if it has none. */
  firstSeq(runId: string): number | null {
    return this.#open(runId)?.log.firstSeq ?? null
  }

  /** The stored line of an event; empty if there is none. */
  lineOf({ runId, seq }: EventPlace): string {
    const log = this.log(runId)
    return log?.line(log.indexOf(seq)) ?? ''
  }

  /** The cursor of a reader that has what the book has of a run and of its child runs: for `?after=` of native events. */
  cursorOf(runId: string): string {
    const below = (id: string): readonly string[] =>
      this.childrenOf(id).flatMap((child) => [child.runId, ...below(child.runId)])
    return [runId, ...below(runId)].map((id) => `${id}:${this.run(id)?.lastSeq ?? 0}`).join(',')
  }

  /** The log as it was stored, with the events that have come since: what `save log` gives. */
  bytesOf(runId: string): Uint8Array {
    const packed = this.#packed.get(runId)
    const opened = this.#opened.get(runId)
    if (packed === undefined) return new Uint8Array()
    const added = opened === undefined ? '' : opened.log.text.slice(decodedLog(packed).length)
    const more = new TextEncoder().encode(added)
    const whole = new Uint8Array(packed.bytes.length + more.length)
    whole.set(packed.bytes)
    whole.set(more, packed.bytes.length)
    return whole
  }

  /**
   * Takes an event of a run that goes on: as a line of the log, if it is stored. One that the book has is passed over. A child run
   * that is new is added. True if something changed.
   */
  append(event: JsonObject & ReadEvent & { readonly runId: string }): boolean {
    const { runId, seq } = event
    if (!this.#packed.has(runId)) {
      const parent = event['parentRunId']
      const part = { runId, bytes: 0, ...(typeof parent === 'string' && { parentRunId: parent }) }
      this.#add({ part, bytes: new Uint8Array() })
    }
    const opened = this.#open(runId)
    if (opened === null) return false
    const { log, outline } = opened
    if (event['durable'] === false) outline.push(event)
    else if (log.indexOf(seq) >= 0) return false
    else {
      log.append(JSON.stringify(event))
      this.#read(opened)
    }
    this.version += 1
    return true
  }

  #open(runId: string): OpenedRun | null {
    const known = this.#opened.get(runId)
    if (known !== undefined) return known
    const packed = this.#packed.get(runId)
    if (packed === undefined) return null
    const opened = { log: new LogText(decodedLog(packed)), outline: new Outline(runId) }
    this.#opened.set(runId, opened)
    this.#read(opened)
    const { problem } = packed.part
    if (problem !== undefined)
      opened.outline.damaged({
        line: opened.log.length + 1,
        kind: 'broken',
        message: `The log could not be read to its end. ${problem}`,
      })
    return opened
  }

  #read({ log, outline }: OpenedRun): void {
    const isWhole = log.text === '' || log.text.endsWith('\n')
    let last = -1
    const broken: (readonly [index: number, message: string])[] = []
    log.read((text, index) => {
      last = index
      const read = readLine(text)
      if (typeof read === 'string') {
        broken.push([index, read])
        return null
      }
      outline.push(read, index + 1)
      return read
    })
    for (const [index, message] of broken) outline.damaged(damageOf(index, message, index === last && !isWhole))
  }
}

function decodedLog({ bytes }: PackedLog): string {
  return new TextDecoder().decode(bytes)
}

/** The event of a line, as an outline needs it; else why there is none. */
function readLine(text: string): ReadEvent | string {
  try {
    const value = skim(text)
    return isEvent(value) ? value : 'It is no event: it has no `kind` and no `seq`.'
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

function isEvent(value: unknown): value is JsonObject & ReadEvent {
  return isObject(value) && typeof value['kind'] === 'string' && typeof value['seq'] === 'number'
}

function damageOf(index: number, message: string, isCut: boolean): Damage {
  const what = isCut ? 'The last line of the log is cut' : `Line ${index + 1} of the log cannot be read`
  return { line: index + 1, kind: isCut ? 'cut' : 'broken', message: `${what}. ${message}` }
}
