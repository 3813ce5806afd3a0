import type { ConfigPolicy } from '#core/state/config-digest.js'
import type { Extension } from '#core/extension/extension.js'
import type { LogStore } from '#core/log/log.js'
import type { Model } from '#core/model-session.js'
import type { ModelRef } from '#contracts/model-reference.js'
import type { Schema } from '#schema/schema.js'
import type { PolicyExtension } from '#extensions/policy/policy.js'
import { defaultLog } from '#harness/config.js'
import { invalidOptions, parse } from '#contracts/parse.js'
import { isObject } from '#util/json.js'
import { functionOf, having, integer, leaf, list, oneOf, partial, record, string } from '#util/validate.js'
import { codedLog } from './thread/coded-log.js'
import type { ModeHarness, Modes } from './conversation/modes.js'
import type { RunStarterDeps } from './conversation/run-starter.js'
import type { Responder } from './people/responder.js'
import { Settings } from './conversation/settings.js'
import { titlesBy } from './people/titles.js'
import type { TitleMaker } from './people/titles.js'
import type { ContentLimits } from './conversation/attachments.js'

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
  /** Schema of the settings of a thread; new threads begin with the defaults of its members. Default: any JSON object. */
  readonly settings?: Schema | undefined
  /** Extensions for every run, outside those of the harness. Default: none. */
  readonly use?: readonly Extension<never>[] | undefined
  readonly limits?: SessionLimits | undefined
  /**
   * The policy of every run. Answers with `remember` add grants to its rules, for the thread. Default: none; grants then apply
   * to tools with `requiresApproval: true`.
   */
  readonly policy?: PolicyExtension | undefined
  /**
   * The configuration with which runs may continue after a deploy, as in `resume`: `same`, `compatible` or `any`. Default: that of
   * the harness of their mode.
   */
  readonly configPolicy?: ConfigPolicy | undefined
  /** The model for a reference. Default: that of the harness for it. */
  readonly resolveModel?: ((reference: ModelRef) => Model | Promise<Model>) | undefined
  /**
   * Answers items without a person, with `by: 'responder'`: it is asked once for each item when a run pauses in this process. Null
   * leaves an item to people, and so do an error, an invalid answer and no answer within 60 s, with a warning. Default: none.
   */
  readonly responder?: Responder | undefined
  /**
   * Makes the title of a conversation that nobody has named, in the background after its first run: a function, or a model. A failure
   * is a warning. Default: none.
   */
  readonly title?: TitleMaker | Model | ModelRef | undefined
}

/** The options with their defaults. */
export interface SessionsConfig<M extends Modes> extends Omit<RunStarterDeps, 'onProvided'> {
  readonly modes: M
  readonly defaultMode: keyof M & string
  readonly content: ContentLimits
  readonly maxQueued: number
  /** Null: any JSON object. */
  readonly settings: Settings | null
  readonly policy: PolicyExtension | null
  readonly responder: Responder | null
  readonly title: TitleMaker | null
}

const MiB = 1024 * 1024
const SHAPE = partial<SessionsOptions>({
  log: having('a `LogStore`', 'append', 'read', 'claim', 'post', 'takePosts', 'inspect', 'list', 'prune', 'export'),
  modes: record(having<ModeHarness>('a `Harness`', 'stream', 'streamResumeRun', 'streamRecover', 'cancel', 'describe')),
  defaultMode: string,
  harness: having<ModeHarness>('a `Harness`', 'stream', 'streamResumeRun', 'streamRecover', 'cancel', 'describe'),
  settings: leaf<Schema>('a schema', (value) => typeof value === 'object' && value !== null),
  use: list(leaf<Extension<never>>('an extension, made by `defineExtension`', isObject)),
  policy: leaf<PolicyExtension>('a policy, made by `policy` of `thinharness/policy`', isPolicy),
  configPolicy: oneOf('same', 'compatible', 'any'),
  resolveModel: functionOf<NonNullable<SessionsOptions['resolveModel']>>(),
  responder: functionOf<Responder>(),
  title: leaf<TitleMaker | Model | ModelRef>('a function, or a model', isTitle),
  limits: partial({ queuedMessages: integer(0), fileBytes: integer(0), files: integer(0) }),
})

/** Throws a `HarnessError` of code `invalid_options`. */
export function resolveOptions<M extends Modes>(options: SessionsOptions<M>): SessionsConfig<M> {
  const {
    log = defaultLog(),
    harness,
    modes: modesByName,
    limits = {},
    use = [],
    settings,
    ...rest
  } = parse(SHAPE, options, '`Sessions`')
  if ((modesByName === undefined) === (harness === undefined))
    throw invalidOptions('`Sessions`: expected either `modes` or `harness`.')
  const modes = (modesByName ?? { default: harness }) as M
  const [first] = Object.keys(modes)
  if (first === undefined) throw invalidOptions('`Sessions`: expected `modes` to have at least one mode.')
  const { defaultMode = first } = rest
  if (!Object.hasOwn(modes, defaultMode))
    throw invalidOptions(`\`Sessions\`: there is no mode \`${defaultMode}\` for \`defaultMode\`.`)
  checkNames(use, rest.policy, modes)
  return {
    log,
    store: codedLog(log),
    modes,
    defaultMode,
    use,
    content: { fileBytes: limits.fileBytes ?? 10 * MiB, files: limits.files ?? 20 },
    maxQueued: limits.queuedMessages ?? 100,
    policy: rest.policy ?? null,
    configPolicy: rest.configPolicy,
    resolveModel: rest.resolveModel ?? null,
    responder: rest.responder ?? null,
    title: rest.title === undefined ? null : typeof rest.title === 'function' ? rest.title : titlesBy(rest.title),
    settings: settings === undefined ? null : new Settings(settings),
  }
}

/** Refuses extensions of one name: the first run would. */
function checkNames(use: readonly Extension<never>[], policy: PolicyExtension | undefined, modes: Modes): void {
  const own = [...use, ...(policy === undefined ? [] : [policy])].map(({ name }) => name)
  for (const [mode, { extensionNames = [] }] of Object.entries(modes)) {
    const twice = [...own, ...extensionNames].find((name, index, all) => all.indexOf(name) !== index)
    if (twice !== undefined)
      throw invalidOptions(
        `\`Sessions\`: mode \`${mode}\` would have two extensions named \`${twice}\`, with those of the sessions: give one another name.`,
      )
  }
}

function isTitle(value: unknown): boolean {
  return typeof value === 'function' || typeof value === 'string' || isObject(value)
}

function isPolicy(value: unknown): boolean {
  return isObject(value) && typeof value['extend'] === 'function'
}
