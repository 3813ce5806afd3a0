import type { ContentPart, RunEvent } from 'thinharness'
import { callText, durationText } from './call-text.js'
import { columnsOf, cut, oneLine, wrapped } from './columns.js'

const FRAMES = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏']
const FRAME_MS = 90
const STYLES = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  cyan: [36, 39],
} as const

type Style = keyof typeof STYLES

/** The part of a terminal or pipe that the screen uses. */
export interface Output {
  readonly isTTY?: boolean
  /** Columns of the terminal. */
  readonly columns?: number
  write(text: string): unknown
}

/** Shows a run in a terminal: the streamed text, each tool call with its duration, and a spinner while waiting. */
export class Screen {
  readonly #out: Output
  readonly #live: boolean
  readonly #color: boolean
  #spinner: NodeJS.Timeout | undefined
  /** The last line of the streamed text, which is not complete. */
  #line = ''
  /** The word at its end, which may become longer. */
  #word = ''

  /** Writes plain lines of any length if the output is not a terminal; without color if `NO_COLOR` is set. */
  constructor(out: Output, env: Readonly<Record<string, string | undefined>> = process.env) {
    this.#out = out
    this.#live = out.isTTY === true
    this.#color = this.#live && (env['NO_COLOR'] ?? '') === '' && env['TERM'] !== 'dumb'
  }

  note(text: string): void {
    this.#paragraph('dim', text)
  }

  /** Names and values, one a line; a value that is too long continues below itself. */
  table(rows: readonly (readonly [name: string, value: string])[]): void {
    const indent = Math.max(...rows.map(([name]) => name.length)) + 3
    const text = rows.map(([name, value]) => wrapped(name.padEnd(indent) + value, this.#columns, ' '.repeat(indent)))
    this.#paragraph('dim', text.join('\n'))
  }

  show(event: RunEvent): void {
    if (event.parentRunId === null) this.#showTop(event)
    this.#showAny(event, event.parentRunId === null ? '' : '  ')
  }

  /** Prompts and text are shown for the main run only: those of child runs are in their calls. */
  #showTop(event: RunEvent): void {
    switch (event.kind) {
      case 'run_started':
        return event.prompt === null ? undefined : this.#paragraph('bold', `${textOf(event.prompt)}\n`)
      case 'text_delta':
        return this.#stream(event.text)
      case 'run_completed':
      case 'run_failed':
        return this.#paragraph('dim', '')
      default:
        return undefined
    }
  }

  #showAny(event: RunEvent, indent: string): void {
    switch (event.kind) {
      case 'model_request_started':
        return this.#wait(indent, `${event.provider}:${event.model}`)
      case 'model_message':
        return this.#stopWaiting()
      case 'tool_call_started': {
        const text = callText(event.toolName, event.arguments)
        const rest = text.slice(event.toolName.length)
        return this.#print(`${indent}${this.#styled('cyan', `→ ${event.toolName}`)}${this.#styled('dim', rest)}`)
      }
      case 'tool_call_completed': {
        const why = event.ok ? '' : ` ${oneLine(event.message ?? '')}`
        const mark = event.ok ? this.#styled('green', '✓') : this.#styled('red', '✗')
        const duration = this.#styled('dim', durationText(event.durationMs))
        return this.#print(`${indent}${mark} ${event.toolName} ${duration}${this.#styled('red', why)}`)
      }
      case 'transport_retry':
        return this.#print(
          indent +
            this.#styled(
              'yellow',
              `… ${oneLine(event.reason).replace(/\.$/, '')}; again in ${durationText(event.delayMs)}`,
            ),
        )
      default:
        return undefined
    }
  }

  get #columns(): number {
    return this.#live ? (this.#out.columns ?? 80) : Infinity
  }

  /** Text as it comes, broken between words. */
  #stream(text: string): void {
    this.#stopWaiting()
    for (const [piece] of text.matchAll(/\n|[^\S\n]+|\S+/g)) {
      if (/^\s/.test(piece)) this.#word = ''
      if (piece === '\n') this.#endLine()
      else this.#append(piece)
    }
  }

  #append(piece: string): void {
    const isBlank = piece.trim() === ''
    const isFull = (): boolean => columnsOf(this.#line + piece) > this.#columns && this.#line !== ''
    // The beginning of the word is there already if it came in pieces.
    if (isFull()) this.#endLine(isBlank ? '' : this.#word)
    else if (isBlank && this.#line === '' && this.#live) return
    if (isFull()) this.#endLine()
    if (isBlank && this.#line === '' && this.#live) return
    for (const [at, line] of wrapped(piece, this.#columns).split('\n').entries()) {
      if (at > 0) this.#endLine()
      this.#line += line
      if (!isBlank) this.#word += line
      this.#out.write(line)
    }
  }

  /** Ends the line; a word that must move to the next one is removed from it. */
  #endLine(moved = ''): void {
    const isAlone = moved === this.#line
    if (moved !== '' && !isAlone) this.#out.write(`\u001b[${columnsOf(moved)}D\u001b[K`)
    this.#out.write('\n')
    this.#line = isAlone ? '' : moved
    this.#word = this.#line
    this.#out.write(this.#line)
  }

  #paragraph(style: Style, text: string): void {
    const lines = wrapped(text, this.#columns).split('\n')
    for (const line of lines) this.#print(line === '' ? '' : this.#styled(style, line))
  }

  #print(line: string): void {
    this.#stopWaiting()
    if (this.#line !== '') this.#out.write('\n')
    this.#line = this.#word = ''
    this.#out.write(`${cut(line, this.#columns)}\n`)
  }

  #wait(indent: string, model: string): void {
    this.#stopWaiting()
    if (!this.#live) return
    if (this.#line !== '') this.#out.write('\n')
    this.#line = this.#word = ''
    let frame = 0
    const started = Date.now()
    this.#spinner = setInterval(() => {
      const waited = durationText(Date.now() - started)
      const line = `${indent}${FRAMES[frame++ % FRAMES.length] ?? ''} ${this.#styled('dim', `${model} ${waited}`)}`
      this.#out.write(`\r${cut(line, this.#columns)}\u001b[K`)
    }, FRAME_MS)
  }

  #stopWaiting(): void {
    if (this.#spinner === undefined) return
    clearInterval(this.#spinner)
    this.#spinner = undefined
    this.#out.write('\r\u001b[2K')
  }

  #styled(style: Style, text: string): string {
    const [begin, end] = STYLES[style]
    return this.#color && text !== '' ? `\u001b[${begin}m${text}\u001b[${end}m` : text
  }
}

function textOf(prompt: string | readonly ContentPart[]): string {
  if (typeof prompt === 'string') return prompt
  return prompt.map((part) => (part.type === 'text' ? part.text : `[${part.type}]`)).join(' ')
}
