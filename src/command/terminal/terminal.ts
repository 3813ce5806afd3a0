import type { Writable } from 'node:stream'
import { stripVTControlCharacters } from 'node:util'
import fastStringTruncatedWidth from 'fast-string-truncated-width'

/** A stream that text is written to. */
export interface TextSink {
  write(text: string): unknown
  readonly isTTY?: boolean | undefined
  readonly columns?: number | undefined
  readonly rows?: number | undefined
}

export interface TerminalPlace {
  readonly stdout: TextSink
  readonly stderr: TextSink
  readonly stdin: NodeJS.ReadStream
  readonly env: Readonly<Record<string, string | undefined>>
}

const COLOURS = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, blue: 34, cyan: 36 } as const
export type Colour = keyof typeof COLOURS

/**
 * Where a command writes: the answer to stdout, all else to stderr. Without a terminal there are no colours, no cursor movements and
 * no questions; the variables `NO_COLOR`, `FORCE_COLOR`, `TERM=dumb` and `CI` hold.
 */
export class Terminal {
  readonly #place: TerminalPlace
  readonly #hasColours: boolean
  /** Lines can be written again in place. */
  readonly isLive: boolean
  /** Somebody can be asked. */
  readonly canAsk: boolean

  constructor(place: TerminalPlace) {
    const { stdout, stderr, stdin, env } = place
    const isSimple = env['TERM'] === 'dumb' || isSet(env['CI'])
    this.#place = place
    this.isLive = stderr.isTTY === true && !isSimple
    this.canAsk = stdin.isTTY && stderr.isTTY === true && stdout.isTTY === true && !isSet(env['CI'])
    this.#hasColours = isSet(env['FORCE_COLOR']) || (this.isLive && !isSet(env['NO_COLOR']))
  }

  get stdin(): NodeJS.ReadStream {
    return this.#place.stdin
  }

  /** Where questions are asked. */
  get questions(): { readonly input: NodeJS.ReadStream; readonly output: Writable } {
    return { input: this.#place.stdin, output: this.#place.stderr as unknown as Writable }
  }

  get env(): TerminalPlace['env'] {
    return this.#place.env
  }

  /** Columns that a line may have without being broken. */
  get width(): number {
    return Math.max(20, this.#place.stderr.columns ?? 80)
  }

  get height(): number {
    return Math.max(4, this.#place.stderr.rows ?? 24)
  }

  /**
   * What a program would read: the answer, events, tables. Control characters are shown only where a terminal would obey them. There
   * `coloured` is a part of it with a colour.
   */
  out(text: string, coloured?: readonly [part: string, colour: Colour]): void {
    const { stdout } = this.#place
    if (stdout.isTTY !== true) stdout.write(text)
    else if (coloured === undefined) stdout.write(visible(text))
    else stdout.write(visible(text).replace(coloured[0], this.paint(coloured[1], coloured[0])))
  }

  /** A line for the person. */
  say(line: string): void {
    this.#place.stderr.write(`${line}\n`)
  }

  /** As it is, also cursor movements. */
  draw(text: string): void {
    this.#place.stderr.write(text)
  }

  paint(colour: Colour, text: string): string {
    return this.#hasColours ? `\u001B[${COLOURS[colour]}m${text}\u001B[0m` : text
  }
}

/** Text of models, tools and people: control characters are shown, never obeyed. Line ends and tabs stay. */
export function visible(text: string): string {
  return text.replace(
    /[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069]/g,
    symbolOf,
  )
}

/** The same on one line. */
export function oneLine(text: string): string {
  return visible(text.replace(/\s+/g, ' ').trim())
}

function symbolOf(character: string): string {
  const code = character.codePointAt(0) ?? 0
  if (code < 0x20) return String.fromCodePoint(0x2400 + code)
  return `\\u${code.toString(16).padStart(4, '0')}`
}

/** A line of at most so many columns; wide characters have two. Colours count none. */
export function cut(line: string, columns: number): string {
  if (widthOf(line) <= columns) return line
  const { index } = fastStringTruncatedWidth(line, { limit: Math.max(1, columns), ellipsis: '…' })
  const kept = line.slice(0, index)
  return `${kept}…${kept.includes('\u001B[') ? '\u001B[0m' : ''}`
}

/** Columns of a line. */
export function widthOf(line: string): number {
  return fastStringTruncatedWidth(stripVTControlCharacters(line)).width
}

/** A line filled up with spaces. */
export function padded(text: string, columns: number): string {
  return text + ' '.repeat(Math.max(0, columns - widthOf(text)))
}

function isSet(value: string | undefined): boolean {
  return value !== undefined && value !== '' && value !== '0'
}

/** `1.2 s`, `3 min`, `2 h`, `5 d`. */
export function timeText(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`
  if (ms < 3_600_000) return `${Math.round(ms / 60_000)} min`
  return ms < 172_800_000 ? `${Math.round(ms / 3_600_000)} h` : `${Math.round(ms / 86_400_000)} d`
}

/** `1 turn`, `2 turns`. */
export function counted(count: number, what: string): string {
  return `${countText(count)} ${what}${count === 1 ? '' : 's'}`
}

/** `1,234`. */
export function countText(count: number): string {
  return count.toLocaleString('en-US')
}

/** `$0.0123`; of an unknown cost, nothing. */
export function costText(costUsd: number | null): string {
  return costUsd === null ? '' : `$${costUsd >= 1 ? costUsd.toFixed(2) : costUsd.toFixed(4)}`
}
