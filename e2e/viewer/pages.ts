import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { packContainer } from '../../src/viewer/reading/container.js'
import type { ContainerHeader, LogPart } from '../../src/viewer/reading/container.js'

/** A log in a page, as lines. */
export interface PageLog {
  readonly runId: string
  readonly parentRunId?: string
  readonly text: string
  readonly summary?: NonNullable<LogPart['summary']>
}

/** The reference run, a run of the same task, and their child runs. */
export const checkout = logsOf(readFileSync(new URL('checkout.jsonl', import.meta.url), 'utf8'))
export const checkoutAgain = logsOf(readFileSync(new URL('checkout-again.jsonl', import.meta.url), 'utf8'))

/** The logs in a text that holds those of several runs, one after the other. */
export function logsOf(text: string): PageLog[] {
  const logs = new Map<string, PageLog>()
  for (const line of text.trimEnd().split('\n')) {
    const { runId, parentRunId } = JSON.parse(line) as { readonly runId: string; readonly parentRunId: string | null }
    const known = logs.get(runId) ?? { runId, ...(parentRunId !== null && { parentRunId }), text: '' }
    logs.set(runId, { ...known, text: `${known.text}${line}\n` })
  }
  return [...logs.values()]
}

/** Writes pages into a folder; the page itself is built once. */
export class PageWriter {
  readonly #folder: string
  readonly #template: string

  constructor(folder: string) {
    this.#folder = folder
    const path = join(folder, 'template.html')
    execFileSync(process.execPath, ['scripts/viewer-page.js', path])
    this.#template = readFileSync(path, 'utf8')
  }

  get template(): string {
    return this.#template
  }

  /** Writes a page with logs, and gives its address. */
  async write(name: string, logs: readonly PageLog[], header: Partial<ContainerHeader> = {}): Promise<string> {
    const bytes = logs.map(({ text }) => new TextEncoder().encode(text))
    const parts = logs.map(({ text: _text, ...part }, index) => ({ ...part, bytes: bytes[index]?.length ?? 0 }))
    const root = logs[0]?.runId ?? null
    const whole: ContainerHeader = {
      format: 1,
      title: 'Fix the checkout test',
      logs: parts,
      root,
      redacted: false,
      ...header,
    }
    const data = await packContainer(whole, bytes)
    const path = join(this.#folder, `${name}.html`)
    writeFileSync(
      path,
      this.#template.replace('<!--logs-->', () => `<script type="text/plain" id="logs">${data}</script>`),
    )
    return pathToFileURL(path).href
  }
}

/** The log of a run of many turns, each with a call of about `bytes` bytes in all. */
export function longLog(turns: number, bytes: number): PageLog {
  const runId = 'run_long'
  const lines: string[] = []
  const start = Date.parse('2026-11-20T08:00:00.000Z')
  let time = start
  const emit = (kind: string, fields: object) => {
    time += 40
    const at = new Date(time).toISOString()
    const base = {
      runId,
      seq: lines.length + 1,
      at,
      durable: true,
      parentRunId: null,
      parentToolCallId: null,
      agentName: null,
    }
    lines.push(JSON.stringify({ kind, ...base, ...fields }))
  }
  const words = 'It reads the next page of the archive, notes what it says about cups, and goes on. '
  const model = { provider: 'scripted', model: 'scripted-1' }
  emit('run_started', {
    begun: 'fresh',
    prompt: 'Read the archive.',
    version: 3,
    root: '/',
    ...model,
    metadata: {},
    rules: { limits: {} },
    history: [],
  })
  for (let turn = 1; turn <= turns; turn += 1) {
    const callId = `call_${turn}`
    const stamp = { id: `e${turn * 2}`, at: new Date(time).toISOString() }
    const args = JSON.stringify({ page: turn })
    emit('model_request_started', {
      requestKind: turn === 1 ? 'start' : 'tool_outputs',
      ...model,
      entries: [],
      notices: [],
    })
    const parts = [
      { type: 'text', text: `Page ${turn} comes next.` },
      { type: 'tool_call', callId, name: 'read_page', arguments: args },
    ]
    const usage = {
      inputTokens: 100 + turn,
      outputTokens: 20,
      cacheReadTokens: turn,
      cacheWriteTokens: 0,
      reasoningTokens: 0,
    }
    const entry = { role: 'assistant', parts, ...model, finishReason: 'tool_calls', usage, ...stamp }
    emit('model_message', { finalizedOutputMode: null, entry, resolution: { kind: 'continue' }, cost: 100 })
    emit('tool_call_started', { callId, toolName: 'read_page', toolIndex: 0, arguments: args })
    const content = `Page ${turn}${turn === turns - 10 ? ' holds the needle' : ''}. ${words.repeat(Math.ceil(bytes / words.length))}`
    const output = JSON.stringify({ ok: true, content, metadata: {} })
    emit('tool_call_completed', {
      callId,
      toolName: 'read_page',
      toolIndex: 0,
      ok: true,
      cancelled: false,
      retryKind: null,
      errorType: null,
      message: null,
      durationMs: 39,
      output,
    })
  }
  emit('run_completed', { stopReason: 'end_turn', usage: { inputTokens: 100, outputTokens: 20 }, pending: [] })
  return { runId, text: `${lines.join('\n')}\n` }
}
