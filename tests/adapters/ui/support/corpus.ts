import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { memoryLog } from 'thinharness'
import type { DurableEvent, LogStore } from 'thinharness'
import { storedOf } from './recorded-run.js'
import type { RecordedRun } from './recorded-run.js'

const FOLDER = fileURLToPath(new URL('../../../corpus/', import.meta.url))

/** A stored run of tests/corpus. */
export interface CorpusRun extends Pick<RecordedRun, 'runId' | 'own' | 'stored'> {
  readonly title: string
  readonly log: LogStore
}

/** The titles of the stored runs, such as `v2/plain`. */
export const CORPUS: readonly string[] = readdirSync(FOLDER)
  .filter((name) => /^v\d+$/.test(name))
  .flatMap((version) =>
    readdirSync(`${FOLDER}${version}`)
      .filter((name) => name.endsWith('.jsonl'))
      .map((name) => `${version}/${name.slice(0, -'.jsonl'.length)}`),
  )

export async function corpusRun(title: string): Promise<CorpusRun> {
  const lines = readFileSync(`${FOLDER}${title}.jsonl`, 'utf8').trim().split('\n')
  const events = lines.map((line) => JSON.parse(line) as DurableEvent)
  const log = memoryLog()
  for (const event of events) await log.append({ kind: 'run', id: event.runId }, [event])
  const runId = events.findLast(({ parentRunId }) => parentRunId === null)?.runId ?? ''
  return { title, runId, log, ...(await storedOf(log, runId)) }
}
