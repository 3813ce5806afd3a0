import { spawn } from 'node:child_process'
import type { ChildProcess, ChildProcessByStdio } from 'node:child_process'
import { join, sep } from 'node:path'
import type { Readable } from 'node:stream'
import { messageOf } from '../../../contracts/errors.js'
import { isObject } from '../../../util/json.js'
import { LONGEST_TIMER_MS } from '../../../util/timeout.js'
import { environmentOf } from '../../process/environment.js'
import { DeadlinePassed } from '../../workspace/failure.js'
import { builtinEngine, isWanted } from '../builtin-engine.js'
import { invalidQuery } from '../engine.js'
import type { EngineEnd, SearchEngine, SearchRequest } from '../engine.js'
import type { FileHits } from '../hits.js'
import { parentsToUse, ripgrepArguments } from './command.js'
import { confirmErrors, patternProblem } from './errors.js'
import { fileTypeIn } from './file-types.js'
import { RipgrepFiles } from './files.js'
import { LineCutter, parseRecord } from './records.js'

/** The program could not be started. */
export class RipgrepUnavailable extends Error {
  override readonly name = 'RipgrepUnavailable'
}

export interface RipgrepLimits {
  /** Most output that is read, in bytes, without records that are too long; then the program is stopped. Default 256 MiB. */
  readonly maxOutputBytes?: number
  /** Longest record that is read, in bytes: a match with a longer one is counted, but not shown. Default 16 MiB. */
  readonly maxRecordBytes?: number
}

const MAX_OUTPUT_BYTES = 256 << 20
const MAX_RECORD_BYTES = 16 << 20
const MAX_ERROR_CHARS = 2_000
const MAX_TYPE_LIST_CHARS = 100_000
const TYPE_LIST_MS = 10_000

/**
 * ripgrep, with its output as a stream. If there are ignore files both above the starts and above the root, the built-in
 * engine searches instead: ripgrep reads all of them or none.
 */
export function ripgrepEngine(program: string, limits: RipgrepLimits = {}): SearchEngine {
  return {
    name: 'ripgrep',
    fileType: async (name) => fileTypeIn(await typeListOf(program), name),
    async search(request, onFile) {
      const parents = await parentsToUse(request)
      if (parents === 'impossible') return builtinEngine.search(request, onFile)
      const args = ripgrepArguments(request, parents === 'all')
      const run = new Run(request, limits, onFile)
      return run.run(program, args)
    },
  }
}

async function typeListOf(program: string): Promise<string> {
  const child = spawn(program, ['--no-config', '--type-list'], {
    env: environmentOf(),
    stdio: ['ignore', 'pipe', 'ignore'],
    timeout: TYPE_LIST_MS,
    windowsHide: true,
  })
  const [list] = await Promise.all([textOf(child.stdout, MAX_TYPE_LIST_CHARS), exitOf(child)])
  return list
}

type Program = ChildProcessByStdio<null, Readable, Readable>

interface Exit {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

class Run {
  readonly #request: SearchRequest
  readonly #limits: RipgrepLimits
  readonly #onFile: (hits: FileHits) => void
  readonly #files: RipgrepFiles
  #found = false

  constructor(request: SearchRequest, limits: RipgrepLimits, onFile: (hits: FileHits) => void) {
    this.#request = request
    this.#limits = limits
    this.#onFile = onFile
    const wantsLines = (path: string): boolean => request.wantsLines(this.#absolute(path))
    this.#files = new RipgrepFiles({ ...request, wantsLines })
  }

  async run(program: string, args: readonly string[]): Promise<EngineEnd> {
    const { time, workspace } = this.#request
    time.check()
    const child = spawn(program, args, {
      cwd: workspace.root,
      env: environmentOf(),
      stdio: ['ignore', 'pipe', 'pipe'],
      windowsHide: true,
    })
    const stop = (): void => stopProgram(child)
    const late = new AbortController()
    late.signal.addEventListener('abort', stop, { once: true })
    const timer = setTimeout(() => late.abort(), Math.min(time.deadline - Date.now(), LONGEST_TIMER_MS))
    time.signal.addEventListener('abort', stop, { once: true })
    try {
      const output = this.#readOutput(child)
      const [overflow, errors, exit] = await Promise.all([output, textOf(child.stderr, MAX_ERROR_CHARS), exitOf(child)])
      time.check()
      // The timer may be a little ahead of the clock.
      if (late.signal.aborted) throw new DeadlinePassed()
      const problem = exit.code === 2 ? patternProblem(errors) : undefined
      if (problem !== undefined) throw invalidQuery(this.#request.query, problem)
      for (const hits of this.#files.rest()) this.#take(hits)
      const confirmed = await confirmErrors(workspace, errors)
      const isForgiven = exit.code === 2 && errors !== '' && confirmed === ''
      return this.#endOf(isForgiven ? { ...exit, code: 1 } : exit, confirmed, overflow)
    } finally {
      clearTimeout(timer)
      time.signal.removeEventListener('abort', stop)
      stop()
    }
  }

  /** True if the program was stopped because it wrote too much. */
  async #readOutput(child: Program): Promise<boolean> {
    const { maxOutputBytes = MAX_OUTPUT_BYTES, maxRecordBytes = MAX_RECORD_BYTES } = this.#limits
    const cutter = new LineCutter(maxRecordBytes)
    const isCounted = this.#files.count.bind(this.#files)
    let size = 0
    for await (const chunk of chunksOf(child.stdout)) {
      this.#addRecords(cutter.push(chunk, isCounted))
      await this.#request.time.breathe()
      if (!cutter.isSkipping) size += chunk.length
      if (size > maxOutputBytes) {
        stopProgram(child)
        return true
      }
    }
    this.#addRecords(cutter.end())
    return false
  }

  #addRecords(lines: Iterable<Buffer | undefined>): void {
    for (const line of lines) {
      if (line !== undefined && this.#files.count(line, 0, line.length)) continue
      const record = line === undefined ? 'too_long' : parseRecord(line)
      if (record === undefined) continue
      const hits = this.#files.add(record)
      if (hits !== undefined) this.#take(hits)
    }
  }

  #take(hits: FileHits): void {
    const path = this.#absolute(hits.path)
    if (!this.#isAllowed(path)) return
    this.#found = true
    this.#onFile({ ...hits, path })
  }

  /** ripgrep reports paths below its arguments: they need not be resolved. */
  #absolute(path: string): string {
    const { root } = this.#request.workspace
    if (sep !== '/' || root.endsWith(sep)) return join(root, path)
    return `${root}/${path.startsWith('./') ? path.slice(2) : path}`
  }

  /** ripgrep does not know the read policy. The true location of a file is checked before its content is shown. */
  #isAllowed(path: string): boolean {
    const { workspace, starts } = this.#request
    if (!starts.includes(path) && (workspace.isOwn(path) || !isWanted(this.#request, path))) return false
    return workspace.readPolicy.covers(path)
  }

  #endOf({ code, signal }: Exit, errors: string, overflow: boolean): EngineEnd {
    if (overflow) return { returncode: 2, detail: 'there was too much output: the counts are too low' }
    if (code === null) return { returncode: 2, detail: `the program was ended by ${signal ?? 'a signal'}` }
    if (code > 1) return { returncode: code, detail: errors }
    // Files with matches may not be readable by the policy.
    return { returncode: this.#found ? 0 : 1, detail: '' }
  }
}

/** Also closes its output, which its own child processes may keep open. */
function stopProgram(child: Program): void {
  child.kill('SIGKILL')
  child.stdout.destroy()
  child.stderr.destroy()
}

/** The output until the stream ends or is destroyed. */
async function* chunksOf(stream: Readable): AsyncGenerator<Buffer, void, undefined> {
  try {
    for await (const chunk of stream) yield chunk as Buffer
  } catch (error) {
    if (!(isObject(error) && error['code'] === 'ERR_STREAM_PREMATURE_CLOSE')) throw error
  }
}

async function textOf(stream: Readable, maxChars: number): Promise<string> {
  let text = ''
  for await (const chunk of chunksOf(stream)) {
    if (text.length <= maxChars) text += chunk.toString()
  }
  // A line that is cut cannot be classified.
  return text.length > maxChars ? text.slice(0, text.lastIndexOf('\n', maxChars) + 1) : text
}

async function exitOf(child: ChildProcess): Promise<Exit> {
  return new Promise((resolve, reject) => {
    child.once('error', (error) => reject(new RipgrepUnavailable(`cannot run ripgrep: ${messageOf(error)}`)))
    child.once('close', (code, signal) => resolve({ code, signal }))
  })
}
