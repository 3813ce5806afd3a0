import type { StreamEvent } from '../../index.js'
import { LiveLines } from './live-lines.js'
import { costText, countText, oneLine, timeText } from './terminal.js'
import type { Terminal } from './terminal.js'

/** A call or a request in progress. */
interface Open {
  readonly text: string
  readonly depth: number
  readonly begunAt: number
}

type Handlers = { readonly [Kind in StreamEvent['kind']]?: (event: StreamEvent & { kind: Kind }) => unknown }

/** Lines of the newest reply that are shown while it arrives. */
const REPLY_LINES = 8
const LONGEST_ARGUMENT = 60

/** A run as it goes on: a line a turn, call and child run, children indented, and the reply that arrives. */
export class RunTree {
  readonly #terminal: Terminal
  readonly #lines: LiveLines
  readonly #open = new Map<string, Open>()
  readonly #depths = new Map<string, number>()
  readonly #turns = new Map<string, number>()
  #reply = ''

  /** `turnsBefore`: of a run that goes on. */
  constructor(terminal: Terminal, runId = '', turnsBefore = 0) {
    this.#terminal = terminal
    this.#lines = new LiveLines(terminal)
    this.#turns.set(runId, turnsBefore)
  }

  add(event: StreamEvent): void {
    const { runId, parentRunId } = event
    if (!this.#depths.has(runId)) this.#depths.set(runId, parentRunId === null ? 0 : this.#depthOf(parentRunId) + 1)
    const handle = this.#on[event.kind] as ((event: StreamEvent) => unknown) | undefined
    handle?.(event)
    this.#lines.show(this.#inProgress())
  }

  /** A line of the command's own, among those of the run. */
  say(line: string): void {
    this.#lines.done(line)
  }

  end(): void {
    this.#lines.clear()
  }

  /** What each kind of event means for the tree. */
  readonly #on: Handlers = {
    run_started: (event) => {
      if (event.parentRunId !== null) this.#done(event, '▸', `${event.agentName ?? 'agent'} begins`, 'cyan')
    },
    model_request_started: (event) => {
      const turn = (this.#turns.get(event.runId) ?? 0) + 1
      this.#turns.set(event.runId, turn)
      this.#begin(event, event.runId, `turn ${turn}`)
      this.#reply = ''
      for (const entry of event.entries)
        if (entry.role === 'user' && entry.notice !== true && event.requestKind !== 'start')
          this.#done(event, '›', `taken: ${textIn(entry.content)}`, 'cyan')
    },
    model_message: (event) => this.#turnEnds(event),
    text_delta: ({ parentRunId, text }) => {
      if (parentRunId === null) this.#reply += text
    },
    deltas_withdrawn: () => (this.#reply = ''),
    tool_call_started: (event) =>
      this.#begin(event, event.callId, `${event.toolName} ${argumentText(event.arguments)}`),
    tool_call_completed: (event) => this.#callEnds(event),
    transport_retry: (event) =>
      this.#done(event, '↻', `again in ${timeText(event.delayMs)}: ${oneLine(event.reason)}`, 'yellow'),
    warning: (event) => this.#done(event, '!', oneLine(event.message), 'yellow'),
    hook_failed: (event) => this.#done(event, '!', `${event.hookEvent}: ${oneLine(event.message)}`, 'yellow'),
    run_failed: (event) => {
      this.#open.clear()
      if (event.parentRunId !== null) this.#done(event, '✗', oneLine(event.message), 'red')
    },
    run_completed: ({ runId }) => this.#open.delete(runId),
  }

  #turnEnds(event: StreamEvent & { kind: 'model_message' }): void {
    const { usage, parts } = event.entry
    const open = this.#open.get(event.runId)
    this.#open.delete(event.runId)
    this.#reply = ''
    const facts = [
      timeText(Date.parse(event.at) - (open?.begunAt ?? Date.parse(event.at))),
      ...(usage.inputTokens === null ? [] : [`${countText(usage.inputTokens)} in`]),
      ...(usage.outputTokens === null ? [] : [`${countText(usage.outputTokens)} out`]),
      ...(event.cost === undefined ? [] : [costText(event.cost / 1e6)]),
    ]
    const hasCalls = parts.some(({ type }) => type === 'tool_call')
    const text = oneLine(parts.map((part) => (part.type === 'text' ? part.text : '')).join(' '))
    const said = hasCalls && text !== '' ? ` · ${text}` : ''
    const dim = this.#terminal.paint('dim', facts.join(' · '))
    this.#done(event, '●', `turn ${this.#turns.get(event.runId) ?? 1} ${dim}${said}`, 'blue')
  }

  #callEnds(event: StreamEvent & { kind: 'tool_call_completed' }): void {
    const text = this.#open.get(event.callId)?.text ?? event.toolName
    this.#open.delete(event.callId)
    const problem = event.ok ? '' : ` ${this.#terminal.paint('red', oneLine(event.message ?? 'failed'))}`
    const time = this.#terminal.paint('dim', timeText(event.durationMs))
    this.#done(event, event.ok ? '✓' : '✗', `${text} ${time}${problem}`, event.ok ? 'green' : 'red')
  }

  #begin(event: StreamEvent, id: string, text: string): void {
    this.#open.set(id, { text, depth: this.#depthOf(event.runId), begunAt: Date.parse(event.at) })
  }

  #done({ runId }: StreamEvent, mark: string, text: string, colour: Parameters<Terminal['paint']>[0]): void {
    const depth = this.#depthOf(runId) + (mark === '●' || mark === '▸' ? 0 : 1)
    this.#lines.done(`${'  '.repeat(depth)}${this.#terminal.paint(colour, mark)} ${text}`)
  }

  #depthOf(runId: string): number {
    return this.#depths.get(runId) ?? 0
  }

  #inProgress(): readonly string[] {
    const now = Date.now()
    const open = [...this.#open.values()].map(({ text, depth, begunAt }) =>
      this.#terminal.paint('dim', `${'  '.repeat(depth)}… ${text} ${timeText(now - begunAt)}`),
    )
    const reply = this.#reply === '' ? [] : oneByOne(this.#reply).slice(-REPLY_LINES)
    return [...open, ...reply]
  }
}

function oneByOne(text: string): readonly string[] {
  return text.trimEnd().split('\n').map(oneLine)
}

/** The most telling argument, on one line. */
export function argumentText(argumentsText: string): string {
  let text = argumentsText
  try {
    const parsed: unknown = JSON.parse(argumentsText)
    const values = typeof parsed === 'object' && parsed !== null ? Object.values(parsed) : []
    const telling: unknown = values.find((value) => typeof value === 'string') ?? values[0]
    // Of a list of edits, the first file.
    const inList = Array.isArray(telling) && telling.length === 1 ? argumentText(JSON.stringify(telling[0])) : null
    text = typeof telling === 'string' ? telling : telling === undefined ? '' : (inList ?? JSON.stringify(telling))
  } catch {
    // As the model wrote it.
  }
  const line = oneLine(text)
  return line.length > LONGEST_ARGUMENT ? `${line.slice(0, LONGEST_ARGUMENT)}…` : line
}

function textIn(content: string | readonly { readonly type: string; readonly text?: string }[]): string {
  return oneLine(typeof content === 'string' ? content : content.map(({ text = '' }) => text).join(' '))
}
