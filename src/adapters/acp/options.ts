import type { Readable, Writable } from 'node:stream'
import type { LogStore } from '#core/log/log.js'
import type { ModelRef } from '#contracts/model-reference.js'
import type { PendingItem } from '#contracts/result.js'
import { parse } from '#contracts/parse.js'
import type { Chat } from '#session/conversation/chat.js'
import type { ChatAnswer } from '#session/thread/grants.js'
import type { CreateOptions, ListThreadsOptions, Sessions, ThreadItem } from '#session/sessions.js'
import { boolean, filledString, functionOf, having, list, object, oneOf, optional, partial } from '#util/validate.js'

/** Options of `serveAcp`. */
export interface AcpOptions {
  /** What the editor writes. Default: standard input. */
  readonly input?: Readable | undefined
  /** What the editor reads. Default: standard output, which then belongs to the protocol: other output goes to standard error. */
  readonly output?: Writable | undefined
  /** The agent, as editors show it. Default: thinharness and its version. */
  readonly agent?: AgentInfo | undefined
  /** The owner of the conversations: others are not seen. Default: none, and the editor sees the threads of all owners. */
  readonly resourceId?: string | undefined
  /** Models that a person can choose, as the option `model` of a session. Default: none. */
  readonly models?: readonly ModelRef[] | undefined
  /** Whether a folder may be the workspace of a session. Default: any may. */
  readonly allowRoot?: ((root: string) => boolean | Promise<boolean>) | undefined
  /**
   * Called when a person has chosen "always" for a call. What it returns is `remember` of an answer that allows the call; null: this
   * call alone. A host that keeps refusals stores them itself. Without it, editors do not offer "always".
   */
  readonly remember?: Remember | undefined
  /** Ask what a loaded session waits for at once, not with its next prompt. Default false. */
  readonly askOnLoad?: boolean | undefined
  /**
   * The file tools `read`, `write` and `edit` read and write text through an editor that can do it, inside the root: they see its
   * changes that are not saved. Default false: they work on the disk.
   */
  readonly useClientFiles?: boolean | undefined
  /** Text as it arrives, or with the complete reply: an editor cannot take text back if a provider breaks off. Default `live`. */
  readonly deltas?: 'live' | 'settled' | undefined
}

export type Remember = (
  item: PendingItem,
  answer: { readonly approved: boolean },
) => ChatAnswer['remember'] | null | Promise<ChatAnswer['remember'] | null>

/** The name of an agent, as editors show it. */
export interface AgentInfo {
  readonly name: string
  readonly title?: string | undefined
  readonly version: string
}

const SHAPE = partial<AcpOptions>({
  input: having<Readable>('a readable stream', 'on', 'pipe'),
  output: having<Writable>('a writable stream', 'on', 'write'),
  agent: object({ name: filledString, title: optional(filledString), version: filledString }),
  resourceId: filledString,
  models: list(filledString),
  allowRoot: functionOf<NonNullable<AcpOptions['allowRoot']>>(),
  remember: functionOf<Remember>(),
  askOnLoad: boolean,
  useClientFiles: boolean,
  deltas: oneOf('live', 'settled'),
})

/** Throws `invalid_options`. */
export function parseAcpOptions(options: AcpOptions): AcpOptions {
  return parse(SHAPE, options, '`serveAcp`')
}

const SESSIONS = having('`Sessions` of `thinharness/session`', 'create', 'open', 'list', 'describe', 'capabilities')

/** Throws `invalid_options`, such as for a harness. */
export function checkSessions(sessions: unknown): void {
  parse(SESSIONS, sessions, '`serveAcp`')
}

/** A conversation of sessions, whatever their modes. */
export type AcpChat = Pick<Chat, keyof Chat>

/** The threads of one owner, or of all. */
export interface ServedThreads {
  create(options: CreateOptions): Promise<AcpChat>
  open(threadId: string): Promise<AcpChat>
  list(options: ListThreadsOptions): AsyncIterable<ThreadItem>
}

/** The part of sessions that an agent for editors calls. */
export interface AcpSessions extends ServedThreads, Pick<Sessions, 'describe' | 'capabilities'> {
  readonly log: LogStore
  readonly modes: readonly string[]
  for(owner: { readonly resourceId: string }): ServedThreads
}
