import { HarnessError, messageOf } from '#contracts/errors.js'
import type { TranscriptEntry } from '#contracts/entry.js'
import type { ToolSpec } from '../tools/tool-spec.js'
import { isObject } from '#util/json.js'
import { withoutUndefined } from '#util/validate.js'
import type { Named, NoticeSource } from './context.js'
import { failedMember, OF_HARNESS } from './context.js'
import { mergedLabels } from '../state/labels.js'
import type { Labels } from '../state/labels.js'
import { checkExtension, checkRunMembers } from './extension.js'
import type { Extension, ExtensionRun, RunMembers } from './extension.js'
import { HookSet } from './hooks.js'
import type { Hook } from './hooks.js'
import type { AnnotateCall, OwnExtension } from './own-extension.js'
import type { Policy } from './policy-decision.js'
import { INPUT_IS_ASKED } from '#contracts/input.js'
import type { AskInput } from '#contracts/input.js'
import { Readers } from './readers.js'
import type { Tracing } from './run-tracer.js'
import type { ViewPolicy } from './view-policy.js'
import type { WrapModelCall, WrapToolCall } from './wraps.js'

/** Everything that surrounds the runs of a harness, or one run, by seam. It never changes: what differs is another object. */
export class RunExtensions {
  readonly tools: readonly ToolSpec[]
  readonly hooks: HookSet
  /** The first is the outermost. */
  readonly modelWraps: readonly WrapModelCall[]
  readonly toolWraps: readonly Named<WrapToolCall>[]
  readonly policies: readonly Named<Policy>[]
  readonly notices: readonly Named<NoticeSource>[]
  readonly views: readonly Named<ViewPolicy>[]
  readonly inputs: readonly Named<AskInput>[]
  /** Those that `forRun` returned. */
  readonly inputsOfRun: readonly Named<AskInput>[]
  /** Null if readers get everything as it is. */
  readonly readers: Readers | null
  readonly tracings: readonly Tracing[]
  readonly annotations: readonly AnnotateCall[]
  readonly #extensions: readonly OwnExtension[]
  #inherited: RunExtensions | null = null

  /** `extensions` from the outermost to the innermost. Throws `invalid_options` for two extensions of one name. */
  constructor(extensions: readonly OwnExtension[]) {
    checkNames(extensions)
    this.#extensions = extensions
    // Extensions may bring the same tool.
    this.tools = [...new Set(extensions.flatMap(({ tools = [] }) => tools))]
    this.hooks = new HookSet(
      extensions.flatMap(({ name, hooks = [] }) => hooks.map((member) => ({ extension: name, member }))),
    )
    this.modelWraps = membersOf(extensions, 'wrapModelCall').map(({ member }) => member)
    this.toolWraps = membersOf(extensions, 'wrapToolCall')
    this.policies = membersOf(extensions, 'policy')
    this.notices = membersOf(extensions, 'notices')
    this.views = membersOf(extensions, 'view')
    this.inputsOfRun = membersOf(
      extensions.filter(({ isInputOfRun }) => isInputOfRun),
      'input',
    )
    const isAsked = extensions.some((extension) => INPUT_IS_ASKED in extension)
    this.inputs = isAsked ? this.inputsOfRun : membersOf(extensions, 'input')
    const readers = readersOf(extensions)
    this.readers = readers.filterReplies || readers.holdReplies ? readers : null
    this.tracings = extensions.flatMap(({ tracing }) => tracing ?? [])
    this.annotations = extensions.flatMap(({ annotateCall }) => annotateCall ?? [])
  }

  get names(): readonly string[] {
    return this.#extensions.map(({ name }) => name)
  }

  /** With the extensions of one call, which are outside all others. */
  with(use: readonly Extension<never>[] | undefined): RunExtensions {
    if (use === undefined || use.length === 0) return this
    return new RunExtensions([...checkedExtensions(use), ...this.#extensions])
  }

  /** With another one, inside all others. */
  and(extension: OwnExtension): RunExtensions {
    return new RunExtensions([...this.#extensions, extension])
  }

  /**
   * For the runs that calls of a run with this transcript start: policies, redaction, wraps, views and tracing hold there too;
   * hooks say so themselves.
   */
  ofChildren(transcript: readonly TranscriptEntry[]): RunExtensions {
    if (this.#inherited !== null) return this.#inherited
    const members = ({
      tools: _t,
      notices: _n,
      instructions: _i,
      labels: _l,
      input: _s,
      ...inherited
    }: RunMembers): RunMembers => inherited
    // What annotates calls is a rule of the run itself: a child has its own.
    const shared = this.#extensions.filter(({ annotateCall }) => annotateCall === undefined)
    const inherited = shared.map((extension) => extension.forChild?.(transcript) ?? reduced(extension, members))
    const extensions = new RunExtensions(inherited)
    if (this.#extensions.every(({ forChild }) => forChild === undefined)) this.#inherited = extensions
    return extensions
  }

  /** For a program that a call of the run starts: its calls are calls of the run. `transcript` is that of the run. */
  ofProgram(transcript: readonly TranscriptEntry[]): RunExtensions {
    const extensions = this.#extensions.map((extension): OwnExtension => {
      const {
        forRun: _f,
        tools: _t,
        notices: _n,
        view: _v,
        wrapModelCall: _w,
        ...members
      } = extension.forChild?.(transcript) ?? extension
      return { ...members, hooks: members.hooks?.filter(({ event }) => OF_CALLS.has(event)) }
    })
    return new RunExtensions(extensions)
  }

  /** For a recorded run that is run again: what hooks and the others did is in the recording. */
  get offered(): RunExtensions {
    // Without tools for the run, those for all runs stay.
    const offered = ({ tools, instructions }: RunMembers): RunMembers => withoutUndefined({ tools, instructions })
    return new RunExtensions(this.#extensions.map((extension) => reduced(extension, offered)))
  }

  /** The instructions that an extension has for this run, in place of the harness's own; null if none has any. */
  get instructions(): string | null {
    return this.#extensions.find(({ instructions }) => instructions !== undefined)?.instructions ?? null
  }

  /** The labels of a run that begins; the caller's win. */
  labels(ofCaller: Labels): Labels {
    return mergedLabels([ofCaller, ...this.#extensions.map(({ labels = {} }) => labels)])
  }

  /** True if some extension has members for one run. */
  get hasRunMembers(): boolean {
    return this.#extensions.some(({ forRun }) => forRun !== undefined)
  }

  /** With the members that extensions have for one run. Rejects if one fails: what it would forbid must not happen. */
  async open(runFor: (extension: string) => ExtensionRun): Promise<RunExtensions> {
    const opening: OwnExtension[] = []
    for (const extension of this.#extensions) opening.push(await opened(extension, runFor))
    return new RunExtensions(opening)
  }

  /** Closes every extension. Rejects with the first error after all have ended. */
  async close(): Promise<void> {
    const closed = await Promise.allSettled(this.#extensions.map(async (extension) => extension.close?.()))
    for (const [index, outcome] of closed.entries()) {
      if (outcome.status !== 'rejected') continue
      const cause: unknown = outcome.reason
      if (cause instanceof HarnessError) throw cause
      const name = this.#extensions[index]?.name ?? ''
      throw new HarnessError('error', `\`close\` of extension \`${name}\` failed: ${messageOf(cause)}`, { cause })
    }
  }
}

/** Hooks that are asked about calls, and about the limits that these reach. */
const OF_CALLS: ReadonlySet<Hook['event']> = new Set([
  ...(['before_tool_call', 'after_tool_call', 'limit_reached'] as const),
  ...(['before_subagent_run', 'after_subagent_run'] as const),
])

/** The options of a harness that are members of extensions. */
export interface ExtensionOptions {
  readonly hooks?: readonly Hook[] | undefined
  readonly wrapModelCall?: readonly WrapModelCall[] | undefined
  readonly wrapToolCall?: readonly WrapToolCall[] | undefined
  readonly tracing?: readonly Tracing[] | undefined
}

/** The options of a harness as its first extensions: an extension has one wrap and one tracing, so there may be several. */
export function optionsAsExtensions(options: ExtensionOptions): readonly Extension[] {
  const { hooks = [], wrapModelCall = [], wrapToolCall = [], tracing = [] } = options
  const length = Math.max(Math.min(hooks.length, 1), wrapModelCall.length, wrapToolCall.length, tracing.length)
  return Array.from({ length }, (_, index) => ({
    name: `${OF_HARNESS}${index}`,
    hooks: index === 0 ? hooks : [],
    wrapModelCall: wrapModelCall[index],
    wrapToolCall: wrapToolCall[index],
    tracing: tracing[index],
  }))
}

/** Refuses a value in `use` that is no extension. A tool is an extension with this tool. */
export function checkedExtensions(use: readonly Extension<never>[]): readonly Extension[] {
  return (use as readonly unknown[]).map((value) => {
    const extension = isTool(value) ? { name: value.name, tools: [value] } : value
    checkExtension(extension)
    return extension
  })
}

function isTool(value: unknown): value is ToolSpec {
  return isObject(value) && typeof value['call'] === 'function' && isObject(value['parameters'])
}

function checkNames(extensions: readonly Extension[]): void {
  const names = new Set<string>()
  for (const { name } of extensions) {
    if (names.has(name))
      throw new HarnessError('invalid_options', `Two extensions in \`use\` have the name \`${name}\`.`)
    names.add(name)
  }
}

type Member = 'wrapModelCall' | 'wrapToolCall' | 'policy' | 'notices' | 'view' | 'redact' | 'output' | 'input'

export function readersOf(extensions: readonly Extension[]): Readers {
  return new Readers({ redactions: membersOf(extensions, 'redact'), outputs: membersOf(extensions, 'output') })
}

/** Members may be methods: they are called on their extension. */
export function membersOf<Name extends Member>(
  extensions: readonly Extension[],
  name: Name,
): readonly Named<NonNullable<Extension[Name]>>[] {
  return extensions.flatMap((extension) => {
    const member = extension[name] as ((...given: readonly unknown[]) => unknown) | undefined
    if (member === undefined) return []
    return [{ extension: extension.name, member: member.bind(extension) as NonNullable<Extension[Name]> }]
  })
}

/** An extension with some of its members only, for all runs and for one. */
function reduced(
  { name, close: _close, annotateCall: _annotate, forRun, ...members }: OwnExtension,
  keep: (members: RunMembers) => RunMembers,
): Extension {
  const keptFor = forRun && (async (run: ExtensionRun): Promise<RunMembers> => keep(await forRun(run)))
  return { ...keep(members), name, forRun: keptFor }
}

async function opened(extension: OwnExtension, runFor: (extension: string) => ExtensionRun): Promise<OwnExtension> {
  if (extension.forRun === undefined) return extension
  const { name } = extension
  try {
    const members: unknown = await extension.forRun(runFor(name))
    checkRunMembers(name, members)
    return { ...extension, isInputOfRun: extension.input === undefined, ...withoutUndefined(members) }
  } catch (cause) {
    if (cause instanceof HarnessError) throw cause
    throw failedMember(`\`forRun\` of extension \`${name}\``, cause)
  }
}
