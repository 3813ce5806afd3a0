import { HarnessError } from '../../index.js'
import type { Harness, JsonObject, History, RunStore } from '../../index.js'
import { isObject } from '../../util/json.js'
import { unknownKey } from '../../util/unknown-key.js'
import type { DbosEngine, DbosQueueOptions } from './engine.js'

export interface DbosRunsOptions<Output = string> {
  /** What runs the runs; or which one does, by the run: told at every stretch, in whatever process it comes to be. */
  readonly harness: Harness<Output> | ((run: RunIdentity) => Harness<Output> | Promise<Harness<Output>>)
  /** Where the runs are kept, for all processes: `postgresLog`, best in the database of the engine. */
  readonly log: RunStore
  /** The host's `DBOS`, not launched yet. Default: that of the package `@dbos-inc/dbos-sdk`, loaded here. */
  readonly dbos?: DbosEngine
  /** Launches DBOS, where the host does not use it otherwise. Default: the host launches it, after `dbosRuns`. */
  readonly launch?: DbosLaunch
  /** Name of the workflow and of the queue: the same in all processes that share the work. Default `thinharness`. */
  readonly name?: string
  readonly queue?: RunQueue
  /** How often is looked for runs whose process is gone, in ms; `false`: only `takeOver` looks. Default 15 000. */
  readonly takeOverEveryMs?: number | false
}

export interface RunIdentity {
  readonly runId: string
  readonly metadata: JsonObject
}

export interface DbosLaunch {
  /** Connection string of the PostgreSQL database; DBOS makes its tables there, in the schema `dbos`. */
  readonly databaseUrl: string
  /** What is queued goes to processes of the version that was new last. Default: the name of the runs and `-1`. */
  readonly applicationVersion?: string
}

/** Limits of the engine's queue; a run that waits for people takes no place. What is not given is unlimited. */
export interface RunQueue {
  /** Runs under way at once, in all processes together. */
  readonly concurrency?: number
  /** Runs under way at once, in each process. */
  readonly workerConcurrency?: number
  /** So many stretches are begun in a period, in ms, at most. */
  readonly rateLimit?: { readonly limit: number; readonly periodMs: number }
  /** How often each process looks for work, in ms. Default 1000. */
  readonly pollMs?: number
}

/** Options of one run. */
export interface StartOptions {
  /** Default: `run_` and 32 hex digits. */
  readonly runId?: string
  /** Data of the host, told to tools, hooks and the log; never to the model. */
  readonly metadata?: JsonObject
  /** Goes on from an earlier run's conversation. */
  readonly history?: History
  /** Runs of a smaller number go first. Default 0. */
  readonly priority?: number
}

const RUNS_OPTIONS = ['harness', 'log', 'dbos', 'launch', 'name', 'queue', 'takeOverEveryMs']
const QUEUE_OPTIONS = ['concurrency', 'workerConcurrency', 'rateLimit', 'pollMs']

/** Refuses options that are none, as `invalid_options`. */
export function checkRunsOptions(options: object): void {
  known(options, RUNS_OPTIONS, 'option of `dbosRuns`')
  const { harness, log, name, launch, queue, takeOverEveryMs: everyMs } = options as Partial<DbosRunsOptions<unknown>>
  if (!isObject(harness) && typeof harness !== 'function') throw expected('harness', 'a harness or a function', harness)
  if (!isObject(log)) throw expected('log', 'a log that all processes share, such as `postgresLog`', log)
  for (const method of ['claim', 'inspect'])
    if (typeof log[method as 'claim'] !== 'function') throw expected('log', `a log with \`${method}\``, 'one without')
  if (name !== undefined && !/^[\w.-]{1,64}$/.test(name))
    throw expected('name', '1 to 64 letters, digits, `_`, `-` or `.`', name)
  if (launch !== undefined) {
    known(launch, ['databaseUrl', 'applicationVersion'], 'field of `launch`')
    if (typeof launch.databaseUrl !== 'string') throw expected('launch.databaseUrl', 'a text', launch.databaseUrl)
  }
  if (everyMs !== undefined && everyMs !== false) positive('takeOverEveryMs', everyMs)
  checkQueue(queue ?? {})
}

function checkQueue(queue: RunQueue): void {
  known(queue, QUEUE_OPTIONS, 'field of `queue`')
  const { concurrency = 1, workerConcurrency = 1, rateLimit, pollMs = 1 } = queue
  positive('queue.concurrency', concurrency)
  positive('queue.workerConcurrency', workerConcurrency)
  positive('queue.pollMs', pollMs)
  if (rateLimit === undefined) return
  known(rateLimit, ['limit', 'periodMs'], 'field of `rateLimit`')
  positive('queue.rateLimit.limit', rateLimit.limit)
  positive('queue.rateLimit.periodMs', rateLimit.periodMs)
}

/** Refuses options of a run that are none, as `invalid_options`. What the harness refuses is told by the run's result. */
export function checkStartOptions(options: StartOptions): void {
  known(options, ['runId', 'metadata', 'history', 'priority'], 'option of `start`')
  const { runId, priority } = options
  if (runId !== undefined && !/^[\w.:-]{1,128}$/.test(runId))
    throw expected('runId', '1 to 128 letters, digits, `_`, `-`, `.` or `:`', runId)
  if (priority !== undefined && (!Number.isInteger(priority) || priority < 0))
    throw expected('priority', 'a whole number from 0 up', priority)
}

/** The same in the words of the engine. */
export function queueOptions({ concurrency, workerConcurrency, rateLimit, pollMs }: RunQueue): DbosQueueOptions {
  return {
    ...(concurrency !== undefined && { globalConcurrency: concurrency }),
    ...(workerConcurrency !== undefined && { workerConcurrency }),
    ...(rateLimit !== undefined && {
      rateLimit: { limitPerPeriod: rateLimit.limit, periodSec: rateLimit.periodMs / 1000 },
    }),
    ...(pollMs !== undefined && { minPollingIntervalMs: pollMs }),
  }
}

function known(given: object, names: readonly string[], what: string): void {
  const problem = unknownKey(given, names, what)
  if (problem !== undefined) throw new HarnessError('invalid_options', problem)
}

function positive(name: string, value: unknown): void {
  if (typeof value === 'number' && Number.isInteger(value) && value >= 1 && value < 2 ** 31) return
  throw expected(name, 'a whole number from 1 up', value)
}

function expected(name: string, what: string, got: unknown): HarnessError {
  const shown = isObject(got) || Array.isArray(got) ? 'something else' : `\`${String(got)}\``
  return new HarnessError('invalid_options', `Expected \`${name}\` to be ${what}, got ${shown}.`)
}
