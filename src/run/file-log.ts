import { createReadStream, existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { HarnessError } from '../errors.js'
import { isObject, parseJson } from '../util/json.js'
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

/** A log in a folder: one JSONL file for each run, named after its id, one event a line. A torn last line is no harm. */
export function fileLog(folder: string, { fsync = 'interval' }: FileLogOptions = {}): RunLog {
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

/** What is not safe in every file system, upper case among it, is written as its code. */
function pathOf(directory: string, runId: string): string {
  const name = runId.replace(/[^a-z0-9_-]/g, (character) => `%${character.charCodeAt(0).toString(16).padStart(2, '0')}`)
  return resolve(directory, `${name}.jsonl`)
}

async function* readEvents(path: string, runId: string, from: number): AsyncGenerator<DurableEvent> {
  if (!existsSync(path)) return
  let rest = Buffer.alloc(0)
  let line = 0
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) {
    let start = 0
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, start)) {
      const bytes = Buffer.concat([rest, chunk.subarray(start, end)])
      rest = Buffer.alloc(0)
      start = end + 1
      const event = eventIn(bytes)
      line += 1
      if (event === undefined) throw brokenRecord(runId, line)
      if (event.seq >= from) yield event
    }
    rest = Buffer.concat([rest, chunk.subarray(start)])
  }
  const last = eventIn(rest)
  if (last !== undefined && last.seq >= from) yield last
  if (last === undefined && line === 0) throw cutWithinFirst(runId)
}

/** The event in a line; nothing in a torn one. */
function eventIn(bytes: Buffer): DurableEvent | undefined {
  const parsed = parseJson(bytes.toString())
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
