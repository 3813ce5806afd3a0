import { styleText } from 'node:util'
import type { WriteStream } from 'node:tty'
import type { RunEvent } from 'thinharness'

const FRAMES = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏']
const FRAME_MS = 90
const LONGEST_ARGUMENTS = 110

type Style = Parameters<typeof styleText>[0]

/** Shows a run in a terminal: the streamed text, each tool call with its duration, and a spinner while waiting. */
export class Screen {
  readonly #out: WriteStream
  readonly #live: boolean
  #spinner: NodeJS.Timeout | undefined
  #inText = false

  /** Writes plain lines if the output is not a terminal. */
  constructor(out: WriteStream) {
    this.#out = out
    this.#live = out.isTTY
  }

  note(text: string): void {
    this.#line(this.#styled('dim', text))
  }

  show(event: RunEvent): void {
    if (event.parentRunId === null) this.#showTop(event)
    this.#showAny(event, event.parentRunId === null ? '' : '  ')
  }

  /** Prompts and text are shown for the main run only: those of child runs are in their calls. */
  #showTop(event: RunEvent): void {
    switch (event.kind) {
      case 'run_started':
        return this.#line(`${this.#styled('bold', textOf(event.prompt))}\n`)
      case 'text_delta':
        return this.#write(event.text)
      case 'run_completed':
      case 'run_failed':
        return this.#line('')
      default:
        return undefined
    }
  }

  #showAny(event: RunEvent, indent: string): void {
    switch (event.kind) {
      case 'model_request_started':
        return this.#wait(`${event.provider}:${event.model}`)
      case 'model_message':
        return this.#stopWaiting()
      case 'tool_call_started':
        return this.#line(
          `${indent}${this.#styled('cyan', `→ ${event.toolName}`)} ${this.#styled('dim', shortened(event.arguments))}`,
        )
      case 'tool_call_completed': {
        const mark = event.ok ? this.#styled('green', '✓') : this.#styled('red', `✗ ${firstLine(event.message ?? '')}`)
        return this.#line(
          `${indent}${mark} ${event.toolName} ${this.#styled('dim', `${event.durationMs.toFixed(1)} ms`)}`,
        )
      }
      case 'transport_retry':
        return this.#line(
          indent + this.#styled('yellow', `… ${firstLine(event.reason)}; retrying in ${event.delayMs} ms`),
        )
      default:
        return undefined
    }
  }

  #write(text: string): void {
    this.#stopWaiting()
    this.#inText = !text.endsWith('\n')
    this.#out.write(text)
  }

  #line(text: string): void {
    this.#stopWaiting()
    if (this.#inText) this.#out.write('\n')
    this.#inText = false
    this.#out.write(`${text}\n`)
  }

  #wait(forWhom: string): void {
    this.#stopWaiting()
    if (!this.#live) return
    let frame = 0
    const started = Date.now()
    this.#spinner = setInterval(() => {
      const seconds = ((Date.now() - started) / 1000).toFixed(1)
      this.#out.write(`\r${FRAMES[frame++ % FRAMES.length] ?? ''} ${this.#styled('dim', `${forWhom} ${seconds} s`)}`)
    }, FRAME_MS)
  }

  #stopWaiting(): void {
    if (this.#spinner === undefined) return
    clearInterval(this.#spinner)
    this.#spinner = undefined
    this.#out.write('\r\u001b[2K')
  }

  #styled(style: Style, text: string): string {
    return this.#live ? styleText(style, text) : text
  }
}

function textOf(prompt: (RunEvent & { kind: 'run_started' })['prompt']): string {
  if (prompt === null || typeof prompt === 'string') return prompt ?? ''
  return prompt.map((part) => (part.type === 'text' ? part.text : `[${part.type}]`)).join(' ')
}

function shortened(text: string): string {
  return text.length > LONGEST_ARGUMENTS ? `${text.slice(0, LONGEST_ARGUMENTS)}…` : text
}

function firstLine(text: string): string {
  return text.split('\n')[0] ?? ''
}
