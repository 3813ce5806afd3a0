import type {
  Answer,
  Extension,
  HarnessStream,
  JsonObject,
  LogStore,
  Prompt,
  ResumeOptions,
  RunOptions,
  Schema,
} from '../index.js'
import { memoryLog } from '../index.js'
import type { ContentLimits } from './content.js'
import { SessionError } from './errors.js'

/** The part of a harness that a session calls. */
export interface ModeHarness<Output = unknown> {
  stream(prompt: Prompt, options?: RunOptions): HarnessStream<Output>
  streamResume(runId: string, answers: readonly Answer[], options?: ResumeOptions): HarnessStream<Output>
  streamRecover(runId: string, options?: ResumeOptions): HarnessStream<Output>
  cancel(runId: string, options?: Pick<RunOptions, 'log'>): Promise<boolean>
}

/** Harnesses by the name of their mode. */
export type Modes = Readonly<Record<string, ModeHarness>>

/** The output of a mode's harness. */
export type OutputOf<Mode> = Mode extends { stream(prompt: Prompt): HarnessStream<infer Output> } ? Output : never

/** Bounds of sessions. */
export interface SessionLimits {
  /** Messages that wait in one queue. Default 100. */
  readonly queuedMessages?: number | undefined
  /** Bytes of one file of a message. Default 10 MiB. */
  readonly fileBytes?: number | undefined
  /** Files of one message. Default 20. */
  readonly files?: number | undefined
}

/** Options of sessions; `modes` or `harness` is required. */
export interface SessionsOptions<M extends Modes = Modes> {
  /** The log of the threads and their runs. Default: memory. */
  readonly log?: LogStore | undefined
  /** A harness for each mode. Runs use the log of the sessions. */
  readonly modes?: M | undefined
  /** The mode of new threads. Default: the first. */
  readonly defaultMode?: (keyof M & string) | undefined
  /** One harness, as the mode `default`. */
  readonly harness?: ModeHarness | undefined
  /** Schema of the settings of a thread. Default: any JSON object. */
  readonly settings?: Schema | undefined
  /** Extensions for every run, outside those of the harness. Default: none. */
  readonly use?: readonly Extension<never>[] | undefined
  readonly limits?: SessionLimits | undefined
}

/** The options with their defaults. */
export interface SessionsConfig<M extends Modes> {
  readonly log: LogStore
  readonly modes: M
  readonly defaultMode: keyof M & string
  readonly use: readonly Extension<never>[]
  readonly content: ContentLimits
  readonly maxQueued: number
  readonly checkSettings: (settings: JsonObject) => Promise<JsonObject>
}

const KNOWN = ['log', 'modes', 'defaultMode', 'harness', 'settings', 'use', 'limits']
const STORE_METHODS = ['append', 'read', 'claim', 'post', 'takePosts', 'inspect', 'list', 'prune', 'export'] as const
const MiB = 1024 * 1024

/** Throws a `SessionError` of code `invalid_options`. */
export function resolveOptions<M extends Modes>(options: SessionsOptions<M>): SessionsConfig<M> {
  const unknown = Object.keys(options).find((key) => !KNOWN.includes(key))
  if (unknown !== undefined)
    throw invalid(`Unknown option \`${unknown}\` of \`Sessions\`; there are ${KNOWN.join(', ')}.`)
  const { log = memoryLog(), harness, limits = {}, use = [] } = options
  const missing = STORE_METHODS.find((name) => typeof log[name] !== 'function')
  if (missing !== undefined) throw invalid(`Expected \`log\` to be a LogStore: it has no \`${missing}\`.`)
  if ((options.modes === undefined) === (harness === undefined)) throw invalid('Expected either `modes` or `harness`.')
  const modes = (options.modes ?? { default: harness }) as M
  const [first] = Object.keys(modes)
  if (first === undefined) throw invalid('Expected `modes` to have at least one mode.')
  const defaultMode = options.defaultMode ?? first
  if (!(defaultMode in modes)) throw invalid(`\`defaultMode\`: there is no mode \`${defaultMode}\`.`)
  for (const [mode, each] of Object.entries(modes))
    if (typeof each.stream !== 'function') throw invalid(`Expected mode \`${mode}\` to be a Harness.`)
  return {
    ...{ log, modes, defaultMode, use },
    content: { fileBytes: limits.fileBytes ?? 10 * MiB, files: limits.files ?? 20 },
    maxQueued: limits.queuedMessages ?? 100,
    checkSettings: settingsCheck(options.settings),
  }
}

function invalid(message: string): SessionError {
  return new SessionError('invalid_options', message)
}

/** A schema of zod, or of another library of the Standard Schema kind. */
interface StandardSchema {
  readonly '~standard': {
    validate(value: unknown): StandardResult | Promise<StandardResult>
  }
}

interface StandardResult {
  readonly issues?: readonly { readonly message: string; readonly path?: readonly unknown[] }[]
}

function settingsCheck(schema: Schema | undefined): SessionsConfig<Modes>['checkSettings'] {
  if (schema === undefined) return (settings) => Promise.resolve(settings)
  if (!isStandard(schema))
    throw invalid('Expected `settings` to be a schema of zod or another Standard Schema library.')
  return async (settings) => {
    const { issues } = await schema['~standard'].validate(settings)
    if (issues === undefined || issues.length === 0) return settings
    const lines = issues.map(({ path = [], message }) => `${path.map(String).join('.') || 'settings'}: ${message}`)
    throw new SessionError('invalid_settings', `The settings do not fit: ${lines.join('; ')}.`)
  }
}

function isStandard(schema: unknown): schema is StandardSchema {
  return typeof schema === 'object' && schema !== null && '~standard' in schema
}
