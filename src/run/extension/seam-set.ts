import { HarnessError, messageOf } from '../../contracts/errors.js'
import type { ToolSpec } from '../../tools/spec.js'
import { ignoreRejection } from '../../util/items.js'
import { isObject } from '../../util/json.js'
import { withoutUndefined } from '../../util/shape.js'
import { HookSet } from '../hooks/hooks.js'
import type { HookEvent } from '../hooks/hook-events.js'
import { composeExtensions } from './compose.js'
import type { SeamOptions, Seams } from './compose.js'
import { checkExtension, checkRunMembers } from './extension.js'
import type { Extension, ExtensionRun, RunMembers } from './extension.js'

/** The seams of a harness or of one run. Never changes: what differs is another set. */
export class SeamSet {
  readonly seams: Seams
  readonly #layers: readonly (SeamOptions | Extension)[]
  readonly #hooks: HookSet
  #inherited: SeamSet | null = null

  /** `layers` from the outermost to the innermost. Throws `invalid_options` for two extensions of one name. */
  constructor(layers: readonly (SeamOptions | Extension)[]) {
    checkNames(layers)
    this.#layers = layers
    this.seams = composeExtensions(layers)
    const { hooks, wrapModelCall, wrapToolCall } = this.seams
    this.#hooks = new HookSet(hooks, { model: wrapModelCall, tool: wrapToolCall })
  }

  /** The hooks of the runs of an agent; null is the run at the top. */
  hooksOf(agentName: string | null): HookSet {
    return this.#hooks.of(agentName)
  }

  /** At which some hook is asked, of whatever run. */
  get hookEvents(): readonly HookEvent[] {
    return this.#hooks.events
  }

  /** With the extensions of one call, which are outside all others. */
  with(use: readonly Extension<never>[] | undefined): SeamSet {
    return use === undefined || use.length === 0 ? this : new SeamSet([...checkedExtensions(use), ...this.#layers])
  }

  /** For the runs that calls start: policies, redaction, wraps, views and tracing hold there too; hooks say so themselves. */
  get inherited(): SeamSet {
    this.#inherited ??= new SeamSet(
      this.#layers.map((layer) =>
        'name' in layer ? reduced(layer, ({ tools: _t, notices: _n, ...inherited }) => inherited) : layer,
      ),
    )
    return this.#inherited
  }

  /** For a recorded run that is run again: what hooks and the others did is in the recording. */
  get offered(): SeamSet {
    // Without tools for the run, those for all runs stay.
    const offered = ({ tools }: RunMembers): RunMembers => (tools === undefined ? {} : { tools })
    return new SeamSet(this.#layers.flatMap((layer) => ('name' in layer ? [reduced(layer, offered)] : [])))
  }

  /** With the members that extensions have for one run; this set itself if none has any. */
  open(runFor: (extension: string) => ExtensionRun): SeamSet {
    const hasState = this.#layers.some((layer) => 'name' in layer && layer.forRun !== undefined)
    if (!hasState) return this
    return new SeamSet(this.#layers.map((layer) => ('name' in layer ? opened(layer, runFor) : layer)))
  }
}

/** Refuses a value in `use` that is no extension. A tool is an extension with this tool. */
export function checkedExtensions(use: readonly Extension<never>[]): readonly Extension[] {
  return (use as readonly unknown[]).map((given) => {
    const extension = isTool(given) ? { name: given.name, tools: [given] } : given
    checkExtension(extension)
    return extension
  })
}

function isTool(value: unknown): value is ToolSpec {
  return isObject(value) && typeof value['call'] === 'function' && isObject(value['parameters'])
}

function checkNames(layers: readonly (SeamOptions | Extension)[]): void {
  const names = new Set<string>()
  for (const layer of layers) {
    if (!('name' in layer)) continue
    if (names.has(layer.name))
      throw new HarnessError('invalid_options', `Two extensions in \`use\` have the name \`${layer.name}\`.`)
    names.add(layer.name)
  }
}

/** An extension with some of its members only, for all runs and for one. */
function reduced(
  { name, close: _close, forRun, ...members }: Extension,
  keep: (members: RunMembers) => RunMembers,
): Extension {
  const keptFor = (run: ExtensionRun): RunMembers => {
    const members = forRun?.(run)
    ignoreRejection(members)
    return keep(members ?? {})
  }
  return { ...keep(members), name, ...(forRun && { forRun: keptFor }) }
}

function opened(extension: Extension, runFor: (extension: string) => ExtensionRun): Extension {
  if (extension.forRun === undefined) return extension
  const { name } = extension
  try {
    const members: unknown = extension.forRun(runFor(name))
    ignoreRejection(members)
    checkRunMembers(name, members)
    return { ...extension, ...withoutUndefined(members) }
  } catch (cause) {
    if (cause instanceof HarnessError) throw cause
    const message = `\`forRun\` of extension \`${name}\` failed: ${messageOf(cause)}`
    throw new HarnessError('hook_failed', message, { cause })
  }
}
