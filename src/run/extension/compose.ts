import { HarnessError } from '../../contracts/errors.js'
import type { ToolSpec } from '../../tools/spec.js'
import type { Hook } from '../hooks/hooks.js'
import type { WrapModelCall, WrapToolCall } from '../hooks/wraps.js'
import type { RunEvent } from '../machine/events.js'
import { checkExtension } from './extension.js'
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
  readonly redact: readonly Named<(event: RunEvent) => RunEvent>[]
  readonly tracing: readonly Tracing[]
  readonly close: () => Promise<void>
}

/** A member of an extension, and the name of that extension. */
export interface Named<Member> {
  readonly extension: string
  readonly member: Member
}

/** The options of a harness that are seams themselves. */
export type SeamOptions = Partial<Pick<Seams, 'tools' | 'hooks' | 'wrapModelCall' | 'wrapToolCall' | 'tracing'>>

/**
 * One value out of the options of a harness and its extensions: the options come first, then the extensions in order.
 * @throws HarnessError `invalid_options` for a value that is no extension, and for two of one name.
 */
export function composeExtensions(options: SeamOptions, use: readonly Extension<never>[] = []): Seams {
  const extensions = checkedExtensions(use)
  return {
    tools: [...(options.tools ?? []), ...extensions.flatMap(({ tools = [] }) => tools)],
    hooks: [...(options.hooks ?? []), ...extensions.flatMap(({ hooks = [] }) => hooks)],
    wrapModelCall: [...(options.wrapModelCall ?? []), ...membersOf(extensions, 'wrapModelCall').map(memberOf)],
    wrapToolCall: [...(options.wrapToolCall ?? []), ...membersOf(extensions, 'wrapToolCall').map(memberOf)],
    policies: membersOf(extensions, 'policy').map(({ extension, member }) => ({ extension, policy: member })),
    notices: membersOf(extensions, 'notices'),
    views: membersOf(extensions, 'view'),
    redact: membersOf(extensions, 'redact'),
    tracing: [...(options.tracing ?? []), ...membersOf(extensions, 'tracing').map(memberOf)],
    close: async () => {
      const closed = await Promise.allSettled(extensions.map(async (extension) => extension.close?.()))
      for (const outcome of closed) if (outcome.status === 'rejected') throw outcome.reason
    },
  }
}

/** Refuses what is no list of extensions, and a name that is there twice. */
export function checkedExtensions(use: readonly Extension<never>[]): readonly Extension[] {
  const extensions: Extension[] = []
  const names = new Set<string>()
  for (const extension of use as readonly unknown[]) {
    checkExtension(extension)
    const { name } = extension
    if (names.has(name)) {
      throw new HarnessError('invalid_options', `Two extensions in \`use\` have the name \`${name}\`.`)
    }
    names.add(name)
    extensions.push(extension)
  }
  return extensions
}

/** What the extensions have of one member; a method is bound to its extension. */
function membersOf<
  Name extends 'wrapModelCall' | 'wrapToolCall' | 'policy' | 'notices' | 'view' | 'redact' | 'tracing',
>(extensions: readonly Extension[], name: Name): readonly Named<NonNullable<Extension[Name]>>[] {
  return extensions.flatMap((extension) => {
    const member = extension[name]
    if (member === undefined) return []
    const bound: unknown = typeof member === 'function' ? member.bind(extension) : member
    return [{ extension: extension.name, member: bound as NonNullable<Extension[Name]> }]
  })
}

function memberOf<Member>({ member }: Named<Member>): Member {
  return member
}
