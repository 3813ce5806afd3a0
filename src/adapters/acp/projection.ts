import { contentOf } from '#contracts/entry.js'
import type { ContentBlock, SessionUpdate, ToolCallContent } from '@agentclientprotocol/sdk'
import type { ContentPart, HostedPart } from '#contracts/entry.js'
import { jsonOr } from '#util/json.js'
import type { JsonValue } from '#util/json.js'
import { endKind } from '#contracts/result.js'
import type { ThreadEvent } from '#session/thread/thread-events.js'
import { TASKS, readTasks } from '#session/tools/task-list.js'
import { contentOfEnvelope } from '../ui/shown-content.js'
import type { AnyEventOf, AnyRunEvent } from '../ui/projection.js'
import { errorSentence } from '../ui/error-sentence.js'
import { TurnReader } from '../ui/turn-reader.js'
import type { ReplyChange } from '../ui/turn-reader.js'
import { contentBlock } from './content-blocks.js'
import { editDiffs, oneLine, partContent, shownCall, textContent } from './shown-call.js'
import type { ToolFacts } from './shown-call.js'

export interface AcpProjectionOptions {
  /** The workspace: an absolute path. */
  readonly root: string
  readonly deltas: 'live' | 'settled'
  readonly toolOf: (name: string) => ToolFacts | undefined
  /** Tokens of the model's window; null if unknown. */
  readonly window: () => number | null
  /** The client shows notices. */
  readonly notices: boolean
  /** The message came from this client, which shows it already. */
  readonly isOwn: (messageId: string) => boolean
}

/** Lines of a child run that are kept for its call. */
const MOST_LINES = 50
const MICRO = 1_000_000

interface OpenCall {
  readonly toolName: string
  readonly rawInput: unknown
  /** Lines about its child runs. */
  readonly lines: string[]
}

/** One run, as far as it was sent. */
interface SentRun {
  readonly turn: TurnReader
  /** How often text was taken back: version 1 of the protocol cannot, so the text begins anew under another id. */
  attempts: number
  isAnew: boolean
  readonly calls: Map<string, OpenCall>
  /** Its messages did not come from this client. */
  readonly showsPrompt: boolean
}

/**
 * The updates of a session out of the events of its conversation. Pure, and ignorant of requests: the same events give the same
 * updates, live and from the log, except for what only arrives live: deltas, progress and the events of child runs.
 */
export class AcpProjection {
  readonly #options: AcpProjectionOptions
  readonly #runs = new Map<string, SentRun>()
  #updates: SessionUpdate[] = []
  #isTitled = false
  /** In whole micro-dollars; null once a reply has no known price. */
  #cost: number | null = 0
  /** The messages of the run that begins next are shown already. */
  #isNextOwn = false

  constructor(options: AcpProjectionOptions) {
    this.#options = options
  }

  next(event: ThreadEvent | AnyRunEvent): readonly SessionUpdate[] {
    if ('threadId' in event) this.#thread(event)
    else if (event.parentRunId === null) this.#run(event)
    else this.#child(event)
    const updates = this.#updates
    this.#updates = []
    return updates
  }

  #thread(event: ThreadEvent): void {
    if (event.kind === 'run_begun') this.#isNextOwn = event.messageIds.every((id) => this.#options.isOwn(id))
    if (event.kind === 'title_changed') {
      this.#isTitled = true
      this.#send({ sessionUpdate: 'session_info_update', title: event.title, updatedAt: event.at })
    }
    const mode = event.kind === 'setting_changed' || event.kind === 'mode_handed_over' ? event.mode : undefined
    if (mode !== undefined) this.#send({ sessionUpdate: 'current_mode_update', currentModeId: mode })
  }

  #run(event: AnyRunEvent): void {
    const run = this.#runOf(event)
    for (const change of run.turn.next(event)) this.#change(event, run, change)
    ;(this.#handlers[event.kind] as ((event: AnyRunEvent, run: SentRun) => void) | undefined)?.(event, run)
  }

  #runOf({ runId }: AnyRunEvent): SentRun {
    let run = this.#runs.get(runId)
    if (run === undefined) {
      const live = this.#options.deltas === 'live'
      const turn = new TurnReader({ live, inputs: false, reasoning: true, outputText: false })
      run = { turn, attempts: 0, isAnew: false, calls: new Map(), showsPrompt: !this.#isNextOwn }
      this.#runs.set(runId, run)
    }
    return run
  }

  #change(event: AnyRunEvent, run: SentRun, change: ReplyChange): void {
    if (change.kind === 'withdrawn' && change.parts.length > 0) {
      run.attempts += 1
      run.isAnew = true
    }
    if (change.kind === 'call') this.#call(run, change)
    if (change.kind === 'cut_off') {
      run.calls.delete(change.callId)
      this.#send({
        sessionUpdate: 'tool_call_update',
        toolCallId: change.callId,
        status: 'failed',
        content: [textContent(change.text)],
        rawOutput: change.text,
      })
    }
    if (change.kind === 'hosted') this.#hosted(change.hosted)
    const shown = change.kind === 'image' || change.kind === 'cited' ? contentOfChange(change) : []
    const ofPart = {
      sessionUpdate: 'agent_message_chunk',
      messageId: `${event.runId}:${'part' in change ? change.part : run.turn.turn}`,
    } as const
    for (const content of shown) this.#send({ ...ofPart, content })
    if (change.kind !== 'text' && change.kind !== 'reasoning') return
    const messageId = `${event.runId}:${change.part}${run.attempts === 0 ? '' : `.${run.attempts}`}`
    const sessionUpdate = change.kind === 'text' ? 'agent_message_chunk' : 'agent_thought_chunk'
    const anew = run.isAnew ? 'The reply begins anew.\n' : ''
    run.isAnew = false
    if (anew !== '') this.#send({ sessionUpdate, messageId, content: { type: 'text', text: anew } })
    this.#send({ sessionUpdate, messageId, content: { type: 'text', text: change.text } })
  }

  /** A call that the provider executed: it has ended. */
  #hosted({ callId: toolCallId, name, source, arguments: input, result = '', isError }: HostedPart): void {
    const status = isError === true ? 'failed' : 'completed'
    const content = result === '' ? [] : [textContent(result)]
    if (input === undefined) return this.#send({ sessionUpdate: 'tool_call_update', toolCallId, status, content })
    const kind = source.kind === 'web' ? 'fetch' : source.kind === 'command' ? 'execute' : 'other'
    this.#send({
      sessionUpdate: 'tool_call',
      toolCallId,
      title: name,
      kind,
      status,
      content,
      rawInput: jsonOr(input, input),
    })
  }

  #call(run: SentRun, { callId, toolName, arguments: text }: Extract<ReplyChange, { readonly kind: 'call' }>): void {
    const { root, toolOf } = this.#options
    const shown = shownCall(toolName, text, { root, facts: toolOf(toolName) })
    run.calls.set(callId, { toolName, rawInput: shown.rawInput, lines: [] })
    this.#send({ sessionUpdate: 'tool_call', toolCallId: callId, name: toolName, status: 'pending', ...shown })
  }

  readonly #handlers: {
    readonly [Kind in AnyRunEvent['kind']]?: (event: AnyEventOf<Kind>, run: SentRun) => void
  } = {
    run_started: (event, run) => {
      const { prompt, runId, at } = event
      if (prompt === null) return
      const parts = contentOf(prompt)
      if (!this.#isTitled) {
        this.#isTitled = true
        const title = oneLine(parts.map((part) => (part.type === 'text' ? part.text : '')).join(' '))
        this.#send({ sessionUpdate: 'session_info_update', title, updatedAt: at })
      }
      if (run.showsPrompt) this.#person(`${runId}:0`, parts)
    },
    model_request_started: ({ entries, runId }) => {
      for (const entry of entries) {
        if (entry.role !== 'user' || entry.messageId === undefined || this.#options.isOwn(entry.messageId)) continue
        this.#person(`${runId}:${entry.id}`, entry.content)
      }
    },
    model_message: ({ entry, cost }) => {
      this.#cost = this.#cost === null || cost === undefined ? null : this.#cost + cost
      const size = this.#options.window()
      const used = entry.usage.inputTokens
      if (size === null || used === null) return
      const paid =
        this.#cost === null || this.#cost === 0 ? {} : { cost: { amount: this.#cost / MICRO, currency: 'USD' } }
      this.#send({ sessionUpdate: 'usage_update', used, size, ...paid })
    },
    tool_call_started: ({ callId }) =>
      this.#send({ sessionUpdate: 'tool_call_update', toolCallId: callId, status: 'in_progress' }),
    tool_progress: ({ callId, update }) => this.#progress(callId, update),
    tool_call_completed: (event, run) => {
      const { callId, ok, output, value, parts = [] } = event
      const call = run.calls.get(callId)
      run.calls.delete(callId)
      const text = contentOfEnvelope(output)
      const diffs = ok && call !== undefined ? editDiffs(call.toolName, call.rawInput, this.#options.root) : []
      const shown = parts.flatMap((part) => partContent(part) ?? [])
      const content: ToolCallContent[] = [...diffs, ...(text === '' ? [] : [textContent(text)]), ...shown]
      this.#send({
        sessionUpdate: 'tool_call_update',
        toolCallId: callId,
        status: ok ? 'completed' : 'failed',
        content,
        rawOutput: value ?? text,
      })
    },
    extension_recorded: ({ extension, value }) => {
      if (extension !== TASKS) return
      const entries = readTasks(value).map(({ content, status }) => ({ content, status, priority: 'medium' as const }))
      this.#send({ sessionUpdate: 'plan', entries })
    },
    warning: ({ message }) => this.#notice('warning', message),
    limit_warning: ({ content }) => this.#notice('warning', content),
    run_failed: (event, run) => {
      for (const change of run.turn.close()) this.#change(event, run, change)
      // A call that has not ended will not.
      for (const callId of run.calls.keys())
        this.#send({ sessionUpdate: 'tool_call_update', toolCallId: callId, status: 'failed' })
      run.calls.clear()
      const said = sentenceOfEnd(event)
      if (said !== null) this.#said(event, said)
    },
  }

  #progress(callId: string, update: JsonValue): void {
    const shown =
      typeof update === 'string' ? { content: [textContent(update)] } : { _meta: { thinharness: { progress: update } } }
    this.#send({ sessionUpdate: 'tool_call_update', toolCallId: callId, ...shown })
  }

  /** Events of a child run are lines of the call that started it. Those of runs below it are not sent. */
  #child(event: AnyRunEvent): void {
    const line = childLine(event)
    const { parentRunId, parentToolCallId, runId, agentName } = event
    if (line === null || parentRunId === null || parentToolCallId === null) return
    const call = this.#runs.get(parentRunId)?.calls.get(parentToolCallId)
    if (call === undefined) return
    call.lines.push(agentName === null ? line : `${agentName}: ${line}`)
    if (call.lines.length > MOST_LINES) call.lines.shift()
    this.#send({
      sessionUpdate: 'tool_call_update',
      toolCallId: parentToolCallId,
      content: [textContent(call.lines.join('\n'))],
      _meta: { thinharness: { run: runId } },
    })
  }

  #person(messageId: string, parts: readonly ContentPart[]): void {
    for (const part of parts)
      this.#send({ sessionUpdate: 'user_message_chunk', messageId, content: contentBlock(part) })
  }

  #said({ runId, seq }: AnyRunEvent, text: string): void {
    this.#send({ sessionUpdate: 'agent_message_chunk', messageId: `${runId}:${seq}`, content: { type: 'text', text } })
  }

  #notice(severity: 'warning', text: string): void {
    if (this.#options.notices) this.#send({ sessionUpdate: 'notice', severity, title: oneLine(text, 400) })
  }

  #send(update: SessionUpdate): void {
    this.#updates.push(update)
  }
}

/** Ends that the answer to a prompt cannot express. */
function sentenceOfEnd({ stopReason, message }: AnyEventOf<'run_failed'>): string | null {
  const kind = endKind(stopReason)
  if (kind === 'limited') return message
  return kind === 'stopped' && stopReason !== 'cancelled' ? errorSentence({ code: stopReason }) : null
}

function childLine(event: AnyRunEvent): string | null {
  if (!event.durable) return null
  if (event.kind === 'tool_call_started') return `calls ${oneLine(event.toolName)}`
  if (event.kind === 'tool_call_completed') return `${event.ok ? 'finished' : 'failed'} ${oneLine(event.toolName)}`
  if (event.kind === 'model_message') {
    const text = event.entry.parts.map((part) => (part.type === 'text' ? part.text : '')).join(' ')
    return text.trim() === '' ? null : oneLine(text, 200)
  }
  if (event.kind === 'run_started') return 'begins'
  if (event.kind === 'run_completed') return event.pending.length > 0 ? 'waits' : 'is done'
  return event.kind === 'run_failed' ? `failed: ${errorSentence(event)}` : null
}

/** Sources and images of a reply: a page is a link. */
function contentOfChange(change: Extract<ReplyChange, { kind: 'cited' | 'image' }>): readonly ContentBlock[] {
  if (change.kind === 'image') {
    const { image } = change
    if ('url' in image) return [{ type: 'resource_link', name: 'image', uri: image.url }]
    return [{ type: 'image', data: image.data, mimeType: image.mediaType }]
  }
  const pages = new Map(change.citations.map(({ url = '', title = url }) => [url, title]))
  pages.delete('')
  return [...pages].map(([uri, name]) => ({ type: 'resource_link', name, uri }))
}
