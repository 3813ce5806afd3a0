import { describe, expect, test } from 'vitest'
import type { AssistantPart, ContentPart, Model, ModelSession, ModelTurn } from 'thinharness'
import { openaiCompatible } from 'thinharness/providers'
import { conformance } from 'thinharness/testing'
import type { ConformanceApi, ConformanceOptions, LawName } from 'thinharness/testing'
import { UNREPORTED_USAGE } from '#contracts/entry.js'

type Turn = ModelSession['turn']
type Server = Parameters<ConformanceOptions['make']>[0]

const good = ({ fetch }: Pick<Server, 'fetch'>): Model =>
  openaiCompatible('m', { fetch, baseUrl: 'http://any.invalid/v1' })

/** The good model with another `turn`. */
function withTurn(change: (turn: Turn) => Turn): ConformanceOptions['make'] {
  return (server) => {
    const model = good(server)
    return {
      ...{ provider: model.provider, id: model.id, capabilities: model.capabilities },
      openSession: () => {
        const session = model.openSession()
        return { turn: change((...asked) => session.turn(...asked)) }
      },
    }
  }
}

/** The good model, whose turns are changed behind it. */
function withReply(change: (turn: ModelTurn, streamed: boolean) => ModelTurn): ConformanceOptions['make'] {
  return withTurn(
    (turn) =>
      async (...asked) =>
        change(await turn(...asked), asked[2].onDelta !== undefined),
  )
}

function withParts(turn: ModelTurn, parts: readonly AssistantPart[]): ModelTurn {
  return { ...turn, entry: { ...turn.entry, parts } }
}

/** The good model, whose requests are changed on their way. */
function withBody(change: (body: Record<string, unknown>) => void): ConformanceOptions['make'] {
  return (server) =>
    good({
      fetch: async (url, init) => {
        const body = (await new Response(init?.body ?? null).json()) as Record<string, unknown>
        change(body)
        return server.fetch(url, { ...init, body: JSON.stringify(body) })
      },
    })
}

/** The good model, for which each piece of a reply is changed as it arrives. */
function withPieces(change: (piece: Buffer) => Uint8Array): ConformanceOptions['make'] {
  return ({ fetch }) =>
    good({
      fetch: async (...asked) => {
        const { body, status, headers } = await fetch(...asked)
        const changed = new TransformStream<Uint8Array, Uint8Array>({
          transform: (piece, out) => out.enqueue(change(Buffer.from(piece))),
        })
        return new Response(body?.pipeThrough(changed) ?? null, { status, headers })
      },
    })
}

let count = 0

/** What is wrong with an adapter, and a law that it breaks. */
const BROKEN: readonly (readonly [string, LawName, ConformanceOptions['make']])[] = [
  [
    'forgets the instructions',
    'round_trip',
    withTurn((turn) => (all, constants, options) => turn(all, { ...constants, instructions: '' }, options)),
  ],
  [
    'forgets who said what',
    'foreign_transcript',
    withTurn(
      (turn) =>
        (all, ...asked) =>
          turn(
            all.filter((entry) => entry.role !== 'assistant' || entry.provider !== 'elsewhere'),
            ...asked,
          ),
    ),
  ],
  ['puts the time into each request', 'stable_prefix', withBody((body) => (body['user'] = String(count++)))],
  [
    'knows the past by its session alone',
    'fresh_session',
    withTurn((turn) => {
      let name = ''
      return (all, constants, options) => {
        name += 'x'
        return turn(
          all,
          { ...constants, settings: { providerOptions: { 'openai-compatible': { user: name } } } },
          options,
        )
      }
    }),
  ],
  [
    'lets sessions know of each other',
    'sessions',
    withTurn(
      (turn) =>
        (all, ...asked) =>
          turn([...past.splice(0, Infinity, ...all), ...all], ...asked),
    ),
  ],
  [
    'drops what is no text',
    'media',
    withTurn(
      (turn) =>
        (all, ...asked) =>
          turn(
            all.map((entry) => (entry.role === 'user' ? { ...entry, content: entry.content.slice(0, 1) } : entry)),
            ...asked,
          ),
    ),
  ],
  [
    'mends in silence',
    'mended_history',
    withTurn((turn) => (all, constants, options) => turn(all, constants, { ...options, onRepair: () => undefined })),
  ],
  [
    'streams another turn',
    'whole_and_streamed',
    withReply((turn, streamed) =>
      streamed ? withParts(turn, [...turn.entry.parts, { type: 'text', text: ' ' }]) : turn,
    ),
  ],
  ['reads each piece by itself', 'any_cut', withPieces((piece) => Buffer.from(piece.toString()))],
  [
    'tells a piece twice',
    'deltas',
    withTurn(
      (turn) => (all, constants, options) =>
        turn(all, constants, {
          ...options,
          onDelta: (delta) => {
            options.onDelta?.(delta)
            options.onDelta?.(delta)
          },
        }),
    ),
  ],
  [
    'drops what it does not know',
    'unknown_blocks',
    withReply((turn) =>
      withParts(
        turn,
        turn.entry.parts.filter((part) => part.type !== 'opaque'),
      ),
    ),
  ],
  [
    'gives all calls one id',
    'call_ids',
    withReply((turn) =>
      withParts(
        turn,
        turn.entry.parts.map((part) => (part.type === 'tool_call' ? { ...part, callId: 'c' } : part)),
      ),
    ),
  ],
  [
    'counts nothing as zero',
    'usage',
    withReply(({ entry, ...turn }) => ({
      ...turn,
      entry: { ...entry, usage: { ...entry.usage, inputTokens: entry.usage.inputTokens ?? 0 } },
    })),
  ],
  [
    'takes every end for a good one',
    'finish_reasons',
    withReply((turn) => ({ ...turn, entry: { ...turn.entry, finishReason: 'stop' } })),
  ],
  [
    'knows no error',
    'error_answers',
    withTurn(
      (turn) =>
        (...asked) =>
          turn(...asked).catch(() => {
            throw new Error('It failed.')
          }),
    ),
  ],
  [
    'takes what came for the whole',
    'cut_stream',
    withTurn((turn) => async (...asked) => {
      await turn(...asked).catch(() => undefined)
      return await Promise.reject(new Error('It was cut.'))
    }),
  ],
  [
    'cannot be stopped',
    'abort',
    withTurn(
      (turn) => (all, constants, options) => turn(all, constants, { ...options, signal: new AbortController().signal }),
    ),
  ],
  [
    'repeats requests although its caller does that',
    'no_retries',
    withTurn(
      (turn) =>
        (all, constants, { retries: _, ...options }) =>
          turn(all, constants, options),
    ),
  ],
  [
    'never says what an attempt has cost',
    'settled_attempts',
    withTurn((turn) => (all, constants, { attempt, ...options }) => {
      const begin = async (
        ...asked: Parameters<NonNullable<typeof attempt>>
      ): ReturnType<NonNullable<typeof attempt>> => ({
        maxOutputTokens: null,
        ...(await attempt?.(...asked)),
        settle: () => undefined,
      })
      return turn(all, constants, { ...options, ...(attempt && { attempt: begin }) })
    }),
  ],
]
const past: Parameters<Turn>[0][number][] = []

describe('the conformance kit', () => {
  test.each(BROKEN)('finds an adapter that %s (`%s`)', async (_what, law, make) => {
    const checked = conformance({ api: 'chat', make, cases: 10, turnMs: 200 }).find(({ name }) => name === law)
    await expect(checked?.check()).rejects.toThrow(`The law \`${law}\` is broken.`)
  })

  test('has a broken adapter for each rule', () => {
    const laws = conformance({ api: 'chat', make: good }).map(({ name }) => name)
    expect([...new Set(BROKEN.map(([, law]) => law))].sort()).toEqual([...laws].sort())
  })

  test('prints how to reproduce a broken case, and it is the same', async () => {
    const make = withReply((turn) =>
      textIn(turn.entry.parts).length % 3 === 0 ? withParts(turn, [{ type: 'text', text: '?' }]) : turn,
    )
    const messageOf = async (options: Partial<ConformanceOptions>): Promise<string> => {
      const law = conformance({ api: 'chat', make, ...options }).find(({ name }) => name === 'whole_and_streamed')
      return law!.check().then(
        () => '',
        (error: unknown) => (error as Error).message,
      )
    }
    const message = await messageOf({ cases: 50 })
    const [, seed] = /seed: (\d+), cases: 1/.exec(message) ?? []
    expect(await messageOf({ seed: Number(seed), cases: 1 })).toBe(message)
  })

  test('leaves out the rules that an adapter need not keep', () => {
    const all = conformance({ api: 'chat', make: good }).map(({ name }) => name)
    const some = conformance({ api: 'chat', make: good, without: ['media', 'abort'] }).map(({ name }) => name)
    expect(some).toEqual(all.filter((name) => name !== 'media' && name !== 'abort'))
  })

  test.each([
    ['make', { make: 'model' }, 'Expected `make` of `conformance` to be a function, got `model`.'],
    ['without', { without: ['mdia'] }, 'Expected `without[0]` of `conformance` to be one of `round_trip`'],
    ['seed', { seed: 1.5 }, 'Expected `seed` of `conformance` to be a whole number, got `1.5`.'],
    ['cases', { cases: 0 }, 'Expected `cases` of `conformance` to be a whole number from 1 up, got `0`.'],
    ['turnMs', { turnMs: 0 }, 'Expected `turnMs` of `conformance` to be a whole number from 1'],
  ])('rejects invalid options (%s)', (_name, options, message) => {
    const given = { api: 'chat', make: good, ...options } as unknown as ConformanceOptions
    expect(() => conformance(given)).toThrow(message)
  })
})

describe('an adapter for an unknown API', () => {
  /** A request is `{ prompt: [lines] }`, a reply `{ answer }`; nothing is streamed. */
  const api: ConformanceApi = {
    read({ body }) {
      const lines = body['prompt'] as readonly string[]
      return {
        messages: lines.map((line, index) =>
          index % 2 === 0 ? { role: 'user', content: line } : { role: 'assistant', text: line, calls: [] },
        ),
        instructions: String(body['instructions']),
        tools: [],
      }
    },
    whole: ({ parts }) => ({ answer: parts.map((part) => ('text' in part ? part.text : '')).join('') }),
    stream: () => [],
    error: (_status, message) => ({ problem: message }),
    isStreamed: () => false,
  }

  test('keeps the rules that it can keep', async () => {
    const make = ({ fetch }: Server): Model => ({
      ...{ provider: 'lines', id: 'l', capabilities: {} },
      openSession: () => ({
        async turn(transcript, { instructions }, { signal }) {
          const prompt = transcript.map((entry) => ('content' in entry ? textOf(entry.content) : textIn(entry.parts)))
          const sent = { method: 'POST', body: JSON.stringify({ instructions, prompt }), signal }
          const { answer } = (await (await fetch('http://any.invalid', sent)).json()) as { answer: string }
          const usage = UNREPORTED_USAGE
          const parts = [{ type: 'text', text: answer }] as const
          return {
            entry: { role: 'assistant', parts, provider: 'lines', model: 'l', finishReason: 'stop', usage },
            raw: answer,
          }
        },
      }),
    })
    const laws = conformance({ api, make, cases: 3 })
    for (const { name, check } of laws) if (name === 'abort') await check()
    const sessions = laws.find(({ name }) => name === 'sessions')
    await expect(sessions?.check()).rejects.toThrow('Expected the tools to be ["read","look_up","send-mail"], got [].')
  })
})

function textOf(content: string | readonly ContentPart[]): string {
  return typeof content === 'string' ? content : content.map((part) => ('text' in part ? part.text : '')).join('')
}

function textIn(parts: readonly AssistantPart[]): string {
  return parts.map((part) => ('text' in part ? part.text : '')).join('')
}
