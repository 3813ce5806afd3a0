import { HarnessError, messageOf } from '../../contracts/errors.js'
import type { ToolSpec } from '../../tools/spec.js'
import type { Hook } from '../hooks/hooks.js'
import type { WrapModelCall, WrapToolCall } from '../hooks/wraps.js'
import type { StreamEvent } from '../machine/events.js'
import type { Extension } from './extension.js'
import type { NoticeSource } from './notice.js'
import type { NamedPolicy } from './policy.js'
import type { Tracing } from './tracing.js'
import type { ViewPolicy } from './view.js'

/** Everything that surrounds a run: the options of its harness and its extensions, as one plain value. */
export interface Seams {
  readonly tools: readonly ToolSpec[]
  readonly hooks: readonly Hook[]
  /** The first is the outermost. */
  readonly wrapModelCall: readonly WrapModelCall[]
  readonly wrapToolCall: readonly WrapToolCall[]
  readonly policies: readonly NamedPolicy[]
  readonly notices: readonly Named<NoticeSource>[]
  readonly views: readonly Named<ViewPolicy>[]
  readonly redact: readonly Named<Redact>[]
  readonly tracing: readonly Tracing[]
  readonly close: () => Promise<void>
}

export type Redact = (event: StreamEvent) => StreamEvent

/** A member of an extension, and the name of that extension. */
export interface Named<Member> {
  readonly extension: string
  readonly member: Member
}

/** The options of a harness that are seams themselves. */
export type SeamOptions = Partial<Pick<Seams, 'hooks' | 'wrapModelCall' | 'wrapToolCall' | 'tracing'>>

/** One value out of the options of a harness and extensions, in their order. */
export function composeExtensions(layers: readonly (SeamOptions | Extension)[]): Seams {
  const all = layers.map((layer) => ('name' in layer ? seamsOf(layer) : { ...NO_SEAMS, ...layer }))
  return {
    // Extensions may bring the same tool.
    tools: [...new Set(all.flatMap(({ tools }) => tools))],
    hooks: all.flatMap(({ hooks }) => hooks),
    wrapModelCall: all.flatMap(({ wrapModelCall }) => wrapModelCall),
    wrapToolCall: all.flatMap(({ wrapToolCall }) => wrapToolCall),
    policies: all.flatMap(({ policies }) => policies),
    notices: all.flatMap(({ notices }) => notices),
    views: all.flatMap(({ views }) => views),
    redact: all.flatMap(({ redact }) => redact),
    tracing: all.flatMap(({ tracing }) => tracing),
    close: async () => {
      const closed = await Promise.allSettled(all.map(({ close }) => close()))
      for (const [index, outcome] of closed.entries()) {
        if (outcome.status !== 'rejected') continue
        const cause: unknown = outcome.reason
        if (cause instanceof HarnessError) throw cause
        const layer = layers[index]
        const name = layer !== undefined && 'name' in layer ? layer.name : ''
        throw new HarnessError('error', `\`close\` of extension \`${name}\` failed: ${messageOf(cause)}`, { cause })
      }
    },
  }
}

const NO_SEAMS: Seams = {
  tools: [],
  hooks: [],
  wrapModelCall: [],
  wrapToolCall: [],
  policies: [],
  notices: [],
  views: [],
  redact: [],
  tracing: [],
  close: () => Promise.resolve(),
}

/** Members may be methods: they are called on their extension. */
function seamsOf(extension: Extension): Seams {
  const { name, tools = [], hooks = [], tracing } = extension
  const { wrapModelCall, wrapToolCall, policy, notices, view, redact, close } = extension
  return {
    tools,
    hooks,
    wrapModelCall: wrapModelCall === undefined ? [] : [wrapModelCall.bind(extension)],
    wrapToolCall: wrapToolCall === undefined ? [] : [wrapToolCall.bind(extension)],
    policies: policy === undefined ? [] : [{ extension: name, policy: policy.bind(extension) }],
    notices: notices === undefined ? [] : [{ extension: name, member: notices.bind(extension) }],
    views: view === undefined ? [] : [{ extension: name, member: view.bind(extension) }],
    redact: redact === undefined ? [] : [{ extension: name, member: redact.bind(extension) }],
    tracing: tracing === undefined ? [] : [tracing],
    close: async () => close?.call(extension),
  }
}
