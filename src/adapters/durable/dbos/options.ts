import { parse, runId } from '#contracts/parse.js'
import type { Harness } from '#harness/harness.js'
import type { JsonObject } from '#util/json.js'
import type { RunOptions } from '#harness/options.js'
import type { LogStore } from '#core/log/log.js'
import {
  anything,
  either,
  having,
  integer,
  matching,
  milliseconds,
  object,
  oneOf,
  optional,
  partial,
  secret,
  string,
} from '#util/validate.js'
import type { DbosEngine, DbosQueueOptions } from './engine.js'

export interface DbosRunsOptions<Output = string> {
  /** The harness of the runs, or a function that returns that of a run: called for each stretch, in its process. */
  readonly harness: Harness<Output> | ((run: RunIdentity) => Harness<Output> | Promise<Harness<Output>>)
  /** The log of the runs, for all processes: `postgresLog`, ideally in the database of the engine. */
  readonly log: LogStore
  /** The host's `DBOS`, not launched yet. Default: that of the package `@dbos-inc/dbos-sdk`. */
  readonly dbos?: DbosEngine | undefined
  /** Launches DBOS, for a host that does not use it otherwise. Default: the host launches it, after `dbosRuns`. */
  readonly launch?: DbosLaunch | undefined
  /** Name of the workflow and of the queue: the same in all processes that share the work. Default `thinharness`. */
  readonly name?: string | undefined
  readonly queue?: RunQueue | undefined
  /** How often to look for runs whose process has ended, in ms; `false`: only `takeOver` looks. Default 15 000. */
  readonly takeOverEveryMs?: number | false | undefined
}

export interface RunIdentity {
  readonly runId: string
  readonly metadata: JsonObject
}

export interface DbosLaunch {
  /** Connection string of the PostgreSQL database; DBOS creates its tables there, in the schema `dbos`. */
  readonly databaseUrl: string
  /** Queued runs go to processes of the latest version. Default: the name of the runs and `-1`. */
  readonly applicationVersion?: string | undefined
}

/** Limits of the engine's queue; a run that waits for people does not count. Default: unlimited. */
export interface RunQueue {
  /** Concurrent runs in all processes together. */
  readonly concurrency?: number | undefined
  /** Concurrent runs in each process. */
  readonly workerConcurrency?: number | undefined
  /** The most stretches that begin within a period, in ms. */
  readonly rateLimit?: { readonly limit: number; readonly periodMs: number } | undefined
  /** How often each process looks for work, in ms. Default 1000. */
  readonly pollMs?: number | undefined
}

/** Options of one run. */
export interface StartOptions {
  /** Default: `run_` and 32 hex digits. */
  readonly runId?: string | undefined
  /** Data of the host, passed to tools, hooks and the log; never to the model. */
  readonly metadata?: object | undefined
  /** The conversation that the run continues. */
  readonly history?: Exclude<RunOptions['history'], null>
  /** Runs with a smaller number begin first. Default 0. */
  readonly priority?: number | undefined
}

const RUNS_OPTIONS = object<DbosRunsOptions<unknown>>({
  harness: having('a harness or a function'),
  log: having('a log that all processes share, such as `postgresLog`', 'claim', 'inspect'),
  dbos: optional(having('the `DBOS` of its package', 'isInitialized')),
  launch: optional(object({ databaseUrl: secret(string), applicationVersion: optional(string) })),
  name: optional(matching(/^[\w.-]{1,64}$/, '1 to 64 letters, digits, `_`, `-` or `.`')),
  queue: optional(
    partial({
      concurrency: integer(1),
      workerConcurrency: integer(1),
      rateLimit: object({ limit: integer(1), periodMs: milliseconds }),
      pollMs: milliseconds,
    }),
  ),
  takeOverEveryMs: optional(either(milliseconds, oneOf(false))),
})

/** Throws `invalid_options`. */
export function parseRunsOptions<Output>(options: DbosRunsOptions<Output>): DbosRunsOptions<Output> {
  // The outputs of a harness are typed by its own options.
  return parse(RUNS_OPTIONS, options, '`dbosRuns`') as DbosRunsOptions<Output>
}

const START_OPTIONS = partial<StartOptions>({
  runId,
  metadata: anything(),
  history: anything(),
  priority: integer(0),
})

/** The harness checks that the metadata is plain JSON. */
type ParsedStart = Omit<StartOptions, 'metadata'> & { readonly metadata?: JsonObject }

/** Throws `invalid_options`. Problems that the harness finds reject the run's result. */
export function parseStartOptions(options: StartOptions): ParsedStart {
  return parse(START_OPTIONS, options, '`start`') as ParsedStart
}

/** The options of the engine's queue. */
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
