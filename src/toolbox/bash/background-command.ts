import { StringDecoder } from 'node:string_decoder'
import { stripVTControlCharacters } from 'node:util'
import { Capture } from '../process/capture.js'
import type { ProcessEnd } from '../process/run-process.js'
import { runWithin } from '../sandbox/sandbox.js'
import { FileFailure } from '../workspace/file-failure.js'
import type { BashSettings } from './options.js'
import type { PreparedCommand } from './run-command.js'

/** How a command in the background ended; null while it is running. */
export type BackgroundEnd = Pick<ProcessEnd & { readonly kind: 'ended' }, 'exitCode' | 'signal' | 'stopped'>

/** Longest lifetime of a command in the background, in ms. */
export const LONGEST_BACKGROUND_MS = 3_600_000

/** A command that runs on after its call. */
export class BackgroundCommand {
  readonly id: string
  readonly prepared: PreparedCommand
  readonly #abort = new AbortController()
  readonly #decoder = new StringDecoder('utf8')
  readonly #maxBytes: number
  readonly #ended: Promise<void>
  #unread: Capture
  #hasUnread = false
  #end: BackgroundEnd | null = null
  /** Called at new output and at the end. */
  #wake: () => void = () => undefined

  constructor(id: string, prepared: PreparedCommand, { maxOutputBytes, graceMs }: BashSettings) {
    this.id = id
    this.prepared = prepared
    this.#maxBytes = maxOutputBytes
    this.#unread = new Capture(maxOutputBytes)
    this.#ended = this.#run(graceMs)
  }

  /** Null while it is running. */
  get end(): BackgroundEnd | null {
    return this.#end
  }

  get hasUnread(): boolean {
    return this.#hasUnread
  }

  /** The output since the last call: its beginning and its end if it is very long. */
  takeOutput(): string {
    const text = stripVTControlCharacters(this.#unread.text())
    this.#unread = new Capture(this.#maxBytes)
    this.#hasUnread = false
    return text
  }

  /** Waits for new output or the end, at most `ms`. */
  async change(ms: number, signal: AbortSignal): Promise<void> {
    if (ms === 0 || this.#hasUnread || this.#end !== null) return
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms)
      const wake = (): void => {
        clearTimeout(timer)
        resolve()
      }
      this.#wake = wake
      signal.addEventListener('abort', wake, { once: true })
    })
  }

  /** Kills it with everything that it started. */
  async kill(): Promise<void> {
    this.#abort.abort()
    await this.#ended
  }

  async #run(graceMs: number): Promise<void> {
    const { command, sandbox } = this.prepared
    try {
      const end = await runWithin(sandbox, {
        ...command,
        timeoutMs: LONGEST_BACKGROUND_MS,
        graceMs,
        maxOutputBytes: 1,
        merged: true,
        signal: this.#abort.signal,
        onData: (chunk) => this.#add(this.#decoder.write(chunk)),
      })
      if (end.kind === 'unstarted') {
        this.#add(`The command could not be started: ${end.code}.`)
        this.#end = { exitCode: end.code === 'ENOENT' ? 127 : 126, signal: null, stopped: null }
      } else this.#end = end
    } catch (error) {
      if (!(error instanceof FileFailure)) throw error
      this.#unread = new Capture(this.#maxBytes)
      this.#add(error.message)
    } finally {
      this.#end ??= { exitCode: null, signal: null, stopped: null }
      this.#wake()
      await sandbox.close()
    }
  }

  #add(text: string): void {
    if (text === '') return
    this.#unread.add(Buffer.from(text))
    this.#hasUnread = true
    this.#wake()
  }
}
