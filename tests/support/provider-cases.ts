import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { HarnessError, textOf, toolCallsOf } from 'thinharness'
import type { Model, ModelDelta, ModelTurn, RequestConstants } from 'thinharness'
import type { ToolCallPart } from '#contracts/entry.js'
import { isObject } from '#util/json.js'

/** Recorded provider answers. */
export const PROVIDER_CASES = new URL('../fixtures/provider-cases/', import.meta.url).pathname

export interface ProviderCase {
  readonly file: string
  readonly api: string
  readonly provider: string
  readonly kind: string
  readonly stream: boolean
  readonly request: { readonly path: string; readonly body: Record<string, unknown> } | null
  readonly response: {
    readonly status: number
    readonly headers: Record<string, string>
    readonly body?: unknown
    readonly sse?: string
    readonly sseBase64?: string
    readonly text?: string
  }
  readonly expect: Expected
}

export interface Expected {
  readonly text: string
  readonly refusal: string | null
  readonly toolCalls: readonly {
    readonly kind?: string
    readonly id: string | null
    readonly name: string
    readonly arguments: unknown
    readonly argumentsRaw: string
    readonly argumentsValid?: boolean
    readonly input?: string
  }[]
  readonly otherBlocks: readonly unknown[]
  readonly reasoning: unknown
  readonly finish: string | null
  readonly finishAccept?: readonly (string | null)[]
  readonly finishRaw: string | null
  readonly usage: Record<string, number | null> | null
  readonly error: {
    readonly status?: number | null
    readonly message?: string | null
    readonly retryable?: boolean
    readonly retryAfterMs?: number
  } | null
  readonly streamComplete: boolean | null
  readonly optional?: readonly string[]
}

/** The single cases of an API, those of `reported-errors` and `mutated-streams` included. */
export function providerCases(api: string): ProviderCase[] {
  return [api, 'reported-errors', 'mutated-streams'].flatMap((folder) =>
    readdirSync(join(PROVIDER_CASES, folder))
      .filter((name) => name.endsWith('.json'))
      .map((name) => ({ file: `${folder}/${name}`, ...readCase(join(PROVIDER_CASES, folder, name)) }))
      .filter((each) => each.api === api),
  )
}

function readCase(path: string): Omit<ProviderCase, 'file'> {
  return JSON.parse(readFileSync(path, 'utf8')) as Omit<ProviderCase, 'file'>
}

/** The reply's bytes. */
export function bytesOf({ response }: ProviderCase): Buffer {
  if (response.sse !== undefined) return Buffer.from(response.sse)
  if (response.sseBase64 !== undefined) return Buffer.from(response.sseBase64, 'base64')
  return Buffer.from(response.text ?? JSON.stringify(response.body))
}

/** How a reply's bytes are cut for delivery. */
export type Cut = (bytes: Buffer) => Buffer[]

export const whole: Cut = (bytes) => [bytes]
export const byteByByte: Cut = (bytes) => Array.from(bytes, (_, index) => bytes.subarray(index, index + 1))
/** Cut at random places; the same for the same seed. */
export function atRandom(seed: number): Cut {
  return (bytes) => {
    const pieces: Buffer[] = []
    let state = seed
    for (let from = 0; from < bytes.length;) {
      state = (state * 1103515245 + 12345) % 2147483648
      const to = from + 1 + (state % 97)
      pieces.push(bytes.subarray(from, to))
      from = to
    }
    return pieces
  }
}

/** A `fetch` that answers every request with the case's reply, cut as told. */
export function fetchOf(each: ProviderCase, cut: Cut): typeof globalThis.fetch {
  return () => {
    const pieces = cut(bytesOf(each))
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        const piece = pieces.shift()
        if (piece === undefined) controller.close()
        else controller.enqueue(piece)
      },
    })
    return Promise.resolve(new Response(body, { status: each.response.status, headers: each.response.headers }))
  }
}

const NO_CONSTANTS: RequestConstants = { instructions: '', tools: [], structuredOutput: null, settings: {} }

/** Asks `model` for one turn, listening for deltas when the case was streamed. */
export async function answerOf(
  model: Model,
  each: ProviderCase,
): Promise<{ turn?: ModelTurn; error?: HarnessError; deltas: ModelDelta[] }> {
  const deltas: ModelDelta[] = []
  const onDelta = (delta: ModelDelta): void => void deltas.push(delta)
  try {
    const entry = {
      role: 'user',
      id: 'e1',
      at: '2026-01-01T00:00:00.000Z',
      content: [{ type: 'text', text: 'x' }],
    } as const
    const options = { generation: 0, signal: new AbortController().signal, ...(each.stream && { onDelta }) }
    return { turn: await model.openSession().turn([entry], NO_CONSTANTS, options), deltas }
  } catch (error) {
    if (!(error instanceof HarnessError)) throw error
    return { error, deltas }
  }
}

/** Compares what came with what the case expects, as `fixtures/provider-cases/README.md` explains it. */
export function expectAnswer(each: ProviderCase, answer: Awaited<ReturnType<typeof answerOf>>): void {
  const wanted = each.expect
  if (wanted.error !== null) {
    expect(answer.error, 'an error was expected').toBeInstanceOf(HarnessError)
    expectError(wanted.error, answer.error)
    return
  }
  expect(answer.error).toBeUndefined()
  const turn = answer.turn
  if (turn === undefined) throw new Error('Expected a turn.')
  expect(textOf(turn.entry.parts)).toBe(wanted.text)
  // The AI SDK has no place for the words of a refusal.
  if (!turn.entry.provider.startsWith('ai-sdk:')) expect(turn.refusal ?? null).toBe(wanted.refusal)
  const finishes = wanted.finishAccept ?? [wanted.finish]
  expect(finishes.map((finish) => (finish === 'pending' ? 'other' : finish))).toContain(turn.entry.finishReason)
  expect(toolCallsOf(turn.entry.parts).map(callOf)).toEqual(wanted.toolCalls.map(wantedCall))
  if (wanted.usage !== null) expectUsage(wanted.usage, turn)
  expectParts(wanted, turn)
  if (each.stream) expectDeltas(answer.deltas, turn)
}

function expectError(wanted: NonNullable<Expected['error']>, error: HarnessError | undefined): void {
  if (typeof wanted.status === 'number' && wanted.status >= 400) expect(error?.status).toBe(wanted.status)
  if (typeof wanted.message === 'string') expect(error?.message).toContain(wanted.message.slice(0, 60))
  if (wanted.retryable !== undefined) expect(error?.retryable, 'retryable').toBe(wanted.retryable)
  if (wanted.retryAfterMs !== undefined) expect(error?.retryAfterMs).toBe(wanted.retryAfterMs)
}

function callOf({ name, arguments: text }: ToolCallPart): unknown {
  return { name, arguments: parsed(text) }
}

function wantedCall(call: Expected['toolCalls'][number]): unknown {
  // The plain text that a custom tool is called with is a member of the arguments, which are JSON.
  if (call.kind === 'custom') return { name: call.name, arguments: { input: call.input } }
  return { name: call.name, arguments: call.argumentsValid === false ? call.argumentsRaw : call.arguments }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text === '' ? '{}' : text) as unknown
  } catch {
    return text
  }
}

function expectUsage(wanted: Record<string, number | null>, { entry: { usage } }: ModelTurn): void {
  const { hostedCalls: _, ...counts } = usage
  expect(counts).toEqual({
    inputTokens: wanted['inputTotal'] ?? wanted['input'] ?? null,
    outputTokens: wanted['output'] ?? null,
    cacheReadTokens: wanted['cacheRead'] ?? null,
    cacheWriteTokens: wanted['cacheWrite'] ?? null,
    reasoningTokens: wanted['reasoning'] ?? null,
  })
}

function expectParts(wanted: Expected, { entry }: ModelTurn): void {
  const opaque = entry.parts.filter(({ type }) => ['opaque', 'hosted', 'image'].includes(type))
  expect(opaque.length, 'other blocks').toBeGreaterThanOrEqual(wanted.refusal === null ? wanted.otherBlocks.length : 0)
  for (const part of opaque) expect(isObject(part.native) && part.native.provider.length > 0).toBe(true)
}

function expectDeltas(deltas: readonly ModelDelta[], turn: ModelTurn): void {
  const texts = deltas.filter((delta) => delta.kind === 'text_delta').map((delta) => delta.text)
  expect(texts.join('')).toBe(textOf(turn.entry.parts))
  for (const call of toolCallsOf(turn.entry.parts)) {
    const pieces = deltas.filter((delta) => delta.kind === 'tool_input_delta' && delta.callId === call.callId)
    expect(pieces.map((delta) => delta.text).join('')).toBe(
      call.arguments === '{}' && pieces.length === 0 ? '' : call.arguments,
    )
  }
}
