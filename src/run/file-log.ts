import { createHash } from 'node:crypto'
import { createReadStream, existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { HarnessError } from '../errors.js'
import { isObject, parseJson } from '../util/json.js'
import { unknownKey } from '../util/unknown-key.js'
import type { DurableEvent } from './events.js'
import type { RunLog } from './log.js'
import { RunFile } from './run-file.js'

export interface FileLogOptions {
  /**
   * What survives. A crash of the process loses nothing in any case: each event has been handed to the operating system.
   * - `always`: nor does a crash of the machine; every append waits for the disk.
   * - `interval` (default): a crash of the machine loses at most the last second.
   * - `never`: a crash of the machine loses what the operating system had not yet written by itself.
   */
  readonly fsync?: 'always' | 'interval' | 'never'
}

/**
 * A log in a folder: one JSONL file for each run, named after its id, one event a line. A torn last line is no harm.
 * Throws `invalid_options` for options that are none.
 */
export function fileLog(folder: string, options: FileLogOptions = {}): RunLog {
  checkOptions(folder, options)
  const { fsync = 'interval' } = options
  const directory = resolve(folder)
  const open = new Map<string, RunFile>()

  return {
    async append(runId, events) {
      const file = open.get(runId) ?? RunFile.open(pathOf(directory, runId), runId)
      open.set(runId, file)
      const ends = events.some(({ kind }) => kind === 'run_completed' || kind === 'run_failed')
      try {
        file.append(events)
        if (fsync === 'always' || (ends && fsync === 'interval')) await file.sync()
        else if (fsync === 'interval') file.syncSoon()
        if (!ends) return
      } catch (error) {
        open.delete(runId)
        await file.close()
        throw error
      }
      open.delete(runId)
      await file.close()
    },
    read: (runId, from = 1) => readEvents(pathOf(directory, runId), runId, from),
  }
}

const POLICIES: readonly unknown[] = ['always', 'interval', 'never', undefined]

function checkOptions(folder: unknown, options: FileLogOptions): void {
  const problem = unknownKey(options, ['fsync'], 'option of `fileLog`')
  if (problem !== undefined) throw new HarnessError('invalid_options', problem)
  if (typeof folder !== 'string' || folder === '') {
    throw new HarnessError('invalid_options', 'Expected the folder of `fileLog` to be a path.')
  }
  if (POLICIES.includes(options.fsync)) return
  const message = `Expected \`fsync\` of \`fileLog\` to be \`always\`, \`interval\` or \`never\`, got ${JSON.stringify(options.fsync)}.`
  throw new HarnessError('invalid_options', message)
}

/** Bytes of a file's name that every file system takes, with room for the ending. */
const LONGEST_NAME = 240

/**
 * What is not safe in every file system, upper case among it, is written as its code; of a name that gets too long by
 * that, the end is a digest of the whole.
 */
function pathOf(directory: string, runId: string): string {
  const bytes = [...Buffer.from(runId)].map((byte) => {
    const character = String.fromCharCode(byte)
    return /[a-z0-9_-]/.test(character) ? character : `%${byte.toString(16).padStart(2, '0')}`
  })
  const name = bytes.join('')
  if (name.length <= LONGEST_NAME) return resolve(directory, `${name}.jsonl`)
  const digest = createHash('sha256').update(runId).digest('hex')
  return resolve(directory, `${name.slice(0, LONGEST_NAME - digest.length - 1)}~${digest}.jsonl`)
}

async function* readEvents(path: string, runId: string, from: number): AsyncGenerator<DurableEvent> {
  if (!existsSync(path)) return
  let rest: Buffer[] = []
  let line = 0
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) {
    let start = 0
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, start)) {
      const event = eventIn([...rest, chunk.subarray(start, end)])
      rest = []
      start = end + 1
      line += 1
      if (event === undefined) throw brokenRecord(runId, line)
      if (event.seq >= from) yield event
    }
    rest.push(chunk.subarray(start))
  }
  const last = eventIn(rest)
  if (last !== undefined && last.seq >= from) yield last
  if (last === undefined && line === 0) throw cutWithinFirst(runId)
}

/** The event in a line; nothing in a torn one. */
function eventIn(pieces: readonly Buffer[]): DurableEvent | undefined {
  const parsed = parseJson(Buffer.concat(pieces).toString())
  const isEvent = parsed.ok && isObject(parsed.value) && typeof parsed.value['seq'] === 'number'
  return isEvent ? (parsed.value as unknown as DurableEvent) : undefined
}

function brokenRecord(runId: string, line: number): HarnessError {
  return new HarnessError('invalid_log', `The log of run \`${runId}\` is damaged: record ${line} cannot be read.`)
}

function cutWithinFirst(runId: string): HarnessError {
  return new HarnessError(
    'invalid_log',
    `The log of run \`${runId}\` was cut within its first record: nothing of the run was kept, so it cannot go on.`,
  )
}
