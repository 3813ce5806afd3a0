import { isSystemError } from '../workspace/file-failure.js'
import { Capture } from './capture.js'
import type { Environment } from './environment.js'
import { groupExists, signalGroup } from './process-group.js'
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'
import { stripVTControlCharacters } from 'node:util'

export type OutputStream = 'stdout' | 'stderr'

export interface ProcessRequest {
  /** Absolute, or a name on the `PATH` of `environment`. */
  readonly program: string
  readonly args: readonly string[]
  /** Absolute; exists. */
  readonly cwd: string
  /** The complete environment. */
  readonly environment: Environment
  /** Time until the group is asked to end, in ms. */
  readonly timeoutMs: number
  /** Time until the group is killed, in ms. Default: none. */
  readonly hardTimeoutMs?: number
  /** Time between asking and killing, in ms. Default 5,000. */
  readonly graceMs?: number
  /** Most bytes of each stream that are kept: its beginning and its end. */
  readonly maxOutputBytes: number
  /** Both streams are kept as one, in the order of arrival. Default false. */
  readonly merged?: boolean
  readonly signal: AbortSignal
  /**
   * For a program without a sandbox: processes that left the group are ended too (on Linux, by a variable of their
   * environment), and all of them if this process is killed. Default false.
   */
  readonly endsAll?: boolean
  /** A sandbox around it writes to descriptor 3 when it is complete. Default false. */
  readonly hasEntrance?: boolean
  /** All output, of both streams, in the order of arrival. */
  readonly onData?: (chunk: Buffer) => void
  /** New lines, at most every 50 ms and at most `maxOutputBytes` of each stream. */
  readonly onLines?: (stream: OutputStream, lines: string) => void
}

export type ProcessEnd =
  | {
      readonly kind: 'ended'
      /** `null` if it was ended by a signal. */
      readonly exitCode: number | null
      readonly signal: NodeJS.Signals | null
      /** Why it was stopped: the time limit, the hard limit, or an abort; `null` if it was not. */
      readonly stopped: 'soft' | 'hard' | 'aborted' | null
      readonly durationMs: number
      /** With `hasEntrance`: whether the sandbox around it was complete. */
      readonly isEntered?: boolean
      readonly stdout: Capture
      /** The same as `stdout` if they are merged. */
      readonly stderr: Capture
    }
  | {
      /** The system could not start it. */
      readonly kind: 'unstarted'
      /** Such as `ENOENT`, `EACCES`, `E2BIG`. */
      readonly code: string
    }

const GRACE_MS = 5_000
/** Longest wait for output that a remaining child process keeps open. */
const DRAIN_MS = 500
/** The same after the whole group was killed. */
const KILLED_DRAIN_MS = 100
/** A killed process that does not end is waiting for a disk or the network; nothing else can be done. */
const KILLED_WAIT_MS = 1_000
/** Time for remaining children to end by themselves. */
const SWEEP_MS = 50

/**
 * Runs a program in its own process group, without input, and ends the whole group: at the time limit (asked first, killed
 * after the grace period), at the hard limit or when the signal is aborted (killed immediately), and after the program has
 * ended. Memory is bounded by `maxOutputBytes`. A process that leaves the group (`setsid`) is found with `endsAll` only. POSIX
 * only: see `processGroupsProblem`. Rejects for errors of the caller only.
 */
export async function runProcess(request: ProcessRequest): Promise<ProcessEnd> {
  const startedAt = performance.now()
  const family = request.endsAll === true ? new Family() : null
  try {
    family?.guard()
    const child = spawnProcess(request, family?.environment)
    if (child.pid !== undefined) family?.guard(child.pid)
    const run = new GroupRun(child, request)
    const { exitCode, signal } = await run.end()
    const durationMs = Math.round(performance.now() - startedAt)
    const { stopped, isEntered, stdout, stderr } = run
    const entered = request.hasEntrance === true ? { isEntered } : {}
    return { kind: 'ended', exitCode, signal, stopped, durationMs, ...entered, stdout, stderr }
  } catch (error) {
    if (isSystemError(error)) return { kind: 'unstarted', code: error.code ?? 'UNKNOWN' }
    throw error
  } finally {
    await family?.end()
  }
}

function spawnProcess(request: ProcessRequest, more: Environment = {}): ChildProcess {
  const { program, args, cwd, environment, hasEntrance = false } = request
  const env = { ...environment, ...more }
  return spawn(program, args, {
    cwd,
    env,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe', ...(hasEntrance ? ['pipe' as const] : [])],
  })
}

interface Exit {
  readonly exitCode: number | null
  readonly signal: NodeJS.Signals | null
}

class GroupRun {
  readonly stdout: Capture
  readonly stderr: Capture
  stopped: 'soft' | 'hard' | 'aborted' | null = null
  isEntered = false
  readonly #child: ChildProcess
  readonly #request: ProcessRequest
  readonly #feeds: LineFeed[] = []
  readonly #timers: NodeJS.Timeout[] = []
  readonly #ended: Promise<void>
  #exit: Exit | undefined
  #lastTimer: NodeJS.Timeout | undefined
  #finish: () => void = () => undefined

  constructor(child: ChildProcess, request: ProcessRequest) {
    this.#child = child
    this.#request = request
    this.#ended = this.#watch()
    this.stdout = new Capture(request.maxOutputBytes)
    this.stderr = request.merged === true ? this.stdout : new Capture(request.maxOutputBytes)
    this.#listen('stdout', this.stdout)
    this.#listen('stderr', this.stderr)
    this.#entrance?.on('data', () => (this.isEntered = true)).on('error', () => undefined)
  }

  get #entrance(): Readable | null {
    const stream = this.#child.stdio[3]
    return stream !== undefined && stream !== null && 'read' in stream ? stream : null
  }

  /** Rejects with the system's error if the program could not be started. */
  async end(): Promise<Exit> {
    const { signal } = this.#request
    const abort = (): void => this.#kill('aborted')
    try {
      this.#setTimers()
      signal.addEventListener('abort', abort, { once: true })
      if (signal.aborted) abort()
      await this.#ended
      await this.#sweep()
    } finally {
      signal.removeEventListener('abort', abort)
      this.#release()
    }
    return this.#exit ?? { exitCode: null, signal: null }
  }

  #listen(stream: OutputStream, capture: Capture): void {
    const { onData, onLines, maxOutputBytes } = this.#request
    const feed = onLines && new LineFeed((lines) => onLines(stream, lines), maxOutputBytes)
    if (feed !== undefined) this.#feeds.push(feed)
    // There are no streams if no descriptors were left for them.
    this.#child[stream]?.on('data', (chunk: Buffer) => {
      capture.add(chunk)
      onData?.(chunk)
      feed?.add(chunk)
    })
    // A read error is not a failure: the end of the program decides.
    this.#child[stream]?.on('error', () => undefined)
  }

  #watch(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#finish = resolve
      this.#child.once('error', (error) => {
        // Also emitted if a signal could not be sent: then the program is still running.
        if (this.#child.pid === undefined) reject(error)
      })
      this.#child.once('close', () => resolve())
      this.#child.once('exit', (exitCode, signal) => {
        this.#exit = { exitCode, signal }
        if (this.stopped === null) this.#finishIn(DRAIN_MS)
        else if (this.stopped !== 'soft') this.#finishIn(KILLED_DRAIN_MS)
      })
    })
  }

  #setTimers(): void {
    const { timeoutMs, hardTimeoutMs, graceMs = GRACE_MS } = this.#request
    if (hardTimeoutMs !== undefined) this.#timers.push(setTimeout(() => this.#kill('hard'), hardTimeoutMs))
    if (timeoutMs >= (hardTimeoutMs ?? Infinity)) return
    const soft = setTimeout(() => {
      if (this.#exit !== undefined || this.stopped !== null) return
      this.stopped = 'soft'
      signalGroup(this.#child.pid, 'SIGTERM')
      this.#timers.push(setTimeout(() => this.#killNow(), graceMs))
    }, timeoutMs)
    this.#timers.push(soft)
  }

  #kill(why: 'hard' | 'aborted'): void {
    // A program that has ended was not stopped, but an abort does not wait for its remaining children.
    if (this.#exit === undefined) this.stopped = why
    else if (why === 'hard') return
    this.#killNow()
  }

  #killNow(): void {
    signalGroup(this.#child.pid, 'SIGKILL')
    this.#finishIn(this.#exit === undefined ? KILLED_WAIT_MS : KILLED_DRAIN_MS)
  }

  #finishIn(ms: number): void {
    clearTimeout(this.#lastTimer)
    this.#lastTimer = setTimeout(() => this.#finish(), ms)
  }

  async #sweep(): Promise<void> {
    const { pid } = this.#child
    if (!groupExists(pid)) return
    if (this.stopped === null && !this.#request.signal.aborted) {
      signalGroup(pid, 'SIGTERM')
      await new Promise((resolve) => setTimeout(resolve, SWEEP_MS))
    }
    signalGroup(pid, 'SIGKILL')
  }

  #release(): void {
    for (const timer of [...this.#timers, this.#lastTimer]) clearTimeout(timer)
    this.#child.stdout?.destroy()
    this.#child.stderr?.destroy()
    this.#entrance?.destroy()
    this.#child.unref()
    for (const feed of this.#feeds) feed.end()
  }
}

const INTERVAL_MS = 50
/** A longer line is emitted in pieces. */
const MAX_LINE_CHARS = 65_536

/** Emits the output of a stream in whole lines, at most every 50 ms and at most `maxBytes` in total. */
export class LineFeed {
  readonly #emit: (lines: string) => void
  readonly #decoder = new StringDecoder('utf8')
  #left: number
  #pieces: Buffer[] = []
  #line = ''
  #timer: NodeJS.Timeout | undefined

  constructor(emit: (lines: string) => void, maxBytes: number) {
    this.#emit = emit
    this.#left = maxBytes
  }

  add(chunk: Buffer): void {
    const piece = chunk.subarray(0, this.#left)
    if (piece.length === 0) return
    this.#left -= piece.length
    this.#pieces.push(piece)
    this.#timer ??= setTimeout(() => this.#flush(), INTERVAL_MS)
  }

  /** Emits the rest, including a last line without a line end. */
  end(): void {
    this.#flush()
    this.#send(this.#line + this.#decoder.end())
    this.#line = ''
    this.#left = 0
  }

  #flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const text = this.#line + this.#decoder.write(Buffer.concat(this.#pieces))
    this.#pieces = []
    const whole = text.lastIndexOf('\n') + 1
    const end = text.length - whole > MAX_LINE_CHARS ? text.length : whole
    this.#line = text.slice(end)
    this.#send(text.slice(0, end))
  }

  #send(text: string): void {
    if (text !== '') this.#emit(stripVTControlCharacters(text))
  }
}

/** Names a command in the environment of its processes. */
const VARIABLE = 'THINHARNESS_COMMAND'
/** A process that is starting another one while it is ended leaves one more. */
const ROUNDS = 20
/** A process that is just being started has no environment for a moment. */
const QUIET_ROUNDS = 2
const ROUND_MS = 5

/**
 * The processes of a command that runs without a sandbox, by a variable that they inherit. A process that removes it from its
 * environment and leaves the process group is not found.
 */
class Family {
  readonly #id = randomBytes(12).toString('hex')
  readonly #guarded: string[] = []

  get environment(): Environment {
    return { [VARIABLE]: this.#id }
  }

  /**
   * Has the processes ended if this process is killed. Called before the command starts, for this process can be killed while
   * it starts it, and again with its process group, if there is no `/proc`.
   */
  guard(pid?: number): void {
    const each = `${pid ?? ''}:${this.#id}`
    this.#guarded.push(each)
    guardian.add(each)
  }

  /** Ends all processes that are left. */
  async end(): Promise<void> {
    if (process.platform === 'linux') {
      let quiet = 0
      for (let round = 0; round < ROUNDS && quiet < QUIET_ROUNDS; round++) {
        const left = await processesWith(`${VARIABLE}=${this.#id}`)
        left.forEach(killProcess)
        quiet = left.length === 0 ? quiet + 1 : 0
        await new Promise((resolve) => setTimeout(resolve, quiet < QUIET_ROUNDS ? ROUND_MS : 0))
      }
    }
    guardian.remove(this.#guarded)
  }
}

function killProcess(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended.
  }
}

async function processesWith(variable: string): Promise<readonly number[]> {
  const pids = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name))
  const found = await Promise.all(
    pids.map(async (pid) => {
      const environment = await readFile(`/proc/${pid}/environ`, 'latin1').catch(() => '')
      return environment.split('\0').includes(variable) && Number(pid) !== process.pid ? [Number(pid)] : []
    }),
  )
  return found.flat()
}

/**
 * Reads lines until this process closes the pipe or ends. Then it kills the groups that were added and not removed, and the
 * processes with their variable, several times: one that is being started has no variable yet.
 */
const SCRIPT = `all=
while read -r sign each; do
  case $sign in
    +) all="$all $each" ;;
    -) rest=; for one in $all; do [ "$one" = "$each" ] || rest="$rest $one"; done; all=$rest ;;
  esac
done
ids=
for each in $all; do
  case $each in
    :*) ids="$ids \${each#:}" ;;
    *) kill -KILL -- "-\${each%%:*}" ;;
  esac
done
for round in \${ids:+${Array.from({ length: 5 }, (_, round) => round).join(' ')}}; do
  for id in $ids; do
    for file in $(grep -lzs "^${VARIABLE}=$id\\$" /proc/[0-9]*/environ); do
      file=\${file#/proc/}; kill -KILL "\${file%/environ}"
    done
  done
  sleep 0.1
done`

/** A small process that exists while commands run without a sandbox, and outlives this one for a moment if it is killed. */
class Guardian {
  #process: ChildProcess | null = null
  readonly #guarded = new Set<string>()

  add(each: string): void {
    this.#guarded.add(each)
    this.#process ??= this.#start()
    this.#process.stdin?.write(`+ ${each}\n`)
  }

  remove(all: readonly string[]): void {
    for (const each of all) {
      this.#guarded.delete(each)
      this.#process?.stdin?.write(`- ${each}\n`)
    }
    if (this.#guarded.size > 0) return
    this.#process?.stdin?.end()
    this.#process = null
  }

  #start(): ChildProcess {
    const env = { PATH: process.env['PATH'] ?? '/usr/bin:/bin' }
    const child = spawn('/bin/sh', ['-c', SCRIPT], { env, detached: true, stdio: ['pipe', 'ignore', 'ignore'] })
    // Without it, commands may outlive this process, which is no reason for them to fail.
    child.on('error', () => undefined)
    child.stdin.on('error', () => undefined)
    child.unref()
    return child
  }
}

const guardian = new Guardian()

/** Text as one word of a shell. */
export function shellQuoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}
