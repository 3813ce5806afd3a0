import type { JsonObject } from '#util/json.js'
import { UNREPORTED_USAGE, entryId } from '#contracts/entry.js'
import type { AssistantPart, ContentPart, TranscriptEntry } from '#contracts/entry.js'
import { At } from './message-place.js'

export type Content = string | readonly ContentPart[]

export interface MessageResult {
  readonly callId: string
  readonly content: Content
  readonly isError: boolean
}

/** A call without a result yet. */
interface OpenCall {
  readonly name: string
  /** Its id in the transcript. */
  readonly callId: string
  /** The state of its approval, if it needed one: a denial is a result. */
  readonly approval?: 'waiting' | 'approved' | { readonly denial: string }
}

/** The entries of a conversation, as they are added. */
export class Entries {
  readonly #entries: TranscriptEntry[] = []
  readonly #at = new Date().toISOString()
  /** By the id in the messages. */
  readonly #open = new Map<string, OpenCall>()
  readonly #callIds = new Set<string>()
  /** Approval → call. */
  readonly #approvals = new Map<string, string>()

  said(content: readonly ContentPart[]): void {
    this.#close()
    this.#entries.push({ ...this.#stamp, role: 'user', content })
  }

  /** A reply, or more of the one before. */
  reply(parts: readonly AssistantPart[]): void {
    const last = this.#entries.at(-1)
    const isMore = last?.role === 'assistant'
    if (!isMore) this.#close()
    const added = parts.map((part) => (part.type === 'tool_call' ? { ...part, callId: this.#opened(part) } : part))
    const all = isMore ? [...last.parts, ...added] : added
    const stamp = isMore ? { id: last.id, at: last.at } : this.#stamp
    const finishReason = all.some((part) => part.type === 'tool_call') ? 'tool_calls' : 'stop'
    const own = { provider: 'unknown', model: 'unknown', finishReason, usage: UNREPORTED_USAGE } as const
    if (isMore) this.#entries.pop()
    if (all.length > 0) this.#entries.push({ ...stamp, role: 'assistant', parts: all, ...own })
  }

  result(at: At, { callId, content, isError }: MessageResult): void {
    const call = this.#open.get(callId)
    if (call === undefined)
      throw at.error(`has the result of \`${callId}\`, which is no tool call without a result before it`)
    this.#open.delete(callId)
    const parts = typeof content === 'string' ? [{ type: 'text' as const, text: content }] : content
    const text = parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n')
    const envelope: JsonObject = { ok: !isError, content: text, metadata: {} }
    const media = parts.filter(({ type }) => type !== 'text')
    const json = JSON.stringify(envelope)
    const shownAs = media.length === 0 ? json : [{ type: 'text' as const, text: json }, ...media]
    const { name } = call
    this.#entries.push({ ...this.#stamp, role: 'tool', callId: call.callId, name, content: shownAs, isError })
  }

  /** A call that waits for an approval. */
  asked(approvalId: string, callId: string): void {
    this.#approvals.set(approvalId, callId)
    this.#approval(approvalId, 'waiting')
  }

  approved(approvalId: string): void {
    this.#approval(approvalId, 'approved')
  }

  /** `denial` becomes the result if the messages have none. */
  denied(approvalId: string, denial: string): void {
    this.#approval(approvalId, { denial })
  }

  end(): readonly TranscriptEntry[] {
    this.#close()
    return this.#entries
  }

  get #stamp() {
    return { id: entryId(this.#entries.length), at: this.#at }
  }

  /** Some servers give the same ids in every reply; in a transcript they are unique. */
  #opened({ callId, name }: { readonly callId: string; readonly name: string }): string {
    if (this.#open.has(callId)) throw new At('messages').error(`two tool calls have the id \`${callId}\``)
    let unique = callId
    for (let count = 2; this.#callIds.has(unique); count += 1) unique = `${callId}_${count}`
    this.#callIds.add(unique)
    this.#open.set(callId, { name, callId: unique })
    return unique
  }

  /** An answer to an approval whose call has its result changes nothing. */
  #approval(approvalId: string, approval: NonNullable<OpenCall['approval']>): void {
    const callId = this.#approvals.get(approvalId) ?? ''
    const call = this.#open.get(callId)
    if (call !== undefined) this.#open.set(callId, { ...call, approval })
  }

  #close(): void {
    const at = new At('messages')
    for (const [callId, { approval }] of this.#open) {
      if (typeof approval !== 'object') throw at.error(`tool call \`${callId}\` ${NO_RESULT[approval ?? 'none']}`)
      this.result(at, { callId, content: approval.denial, isError: true })
    }
  }
}

const NO_RESULT = {
  none: 'has no result',
  waiting: 'waits for an approval: answer it and execute the call first, or leave the call out',
  approved: 'was approved and has no result: execute it first, or leave the call out',
}
