// What a turn and a delta cost, as counts that are the same on every machine: writes them as a line of JSON. The provider is in this
// process; it has its replies as bytes, so that it makes no promises and encodes nothing.
import { createServer } from 'node:http'
import { Session } from 'node:inspector'
import { promiseHooks } from 'node:v8'
import { defineTool, Harness } from '#index.js'
import { openai } from '#providers/index.js'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Profiler } from 'node:inspector'

/** Numbers that only grow, by name. */
type Counts = Readonly<Record<string, number>>
/** What has been counted so far. */
type Now = () => Counts

const TURNS = 20
const A_PIECE = 50

const look = defineTool({
  ...{ name: 'look', description: 'Looks something up.' },
  parameters: { type: 'object', properties: { id: { type: 'string' } }, required: ['id'], additionalProperties: false },
  handler: () => 'Found.',
})

const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2 }

function replyOf(turn: number, item: object): object {
  return { id: `resp_${turn}`, object: 'response', status: 'completed', model: 'm', output: [item], usage }
}

function callOf(turn: number): object {
  return { type: 'function_call', id: `fc_${turn}`, call_id: `call_${turn}`, name: 'look', arguments: '{"id":"a"}' }
}

function said(text: string): object {
  const content = [{ type: 'output_text', text, annotations: [] }]
  return { type: 'message', id: 'msg_1', role: 'assistant', status: 'completed', content }
}

/** A reply in so many deltas, in pieces of `A_PIECE` of them. */
function streamOf(deltas: number): readonly string[] {
  const item = said('word'.repeat(deltas))
  const first = { type: 'response.output_item.added', output_index: 0, item: { ...item, content: [] } }
  const delta = {
    type: 'response.output_text.delta',
    item_id: 'msg_1',
    output_index: 0,
    content_index: 0,
    delta: 'word',
  }
  const last = { type: 'response.completed', response: replyOf(1, item) }
  const piece = frameOf(delta).repeat(A_PIECE)
  return [frameOf(first) + piece, ...Array<string>(deltas / A_PIECE - 1).fill(piece), frameOf(last)]
}

function frameOf(event: object): string {
  return `data: ${JSON.stringify({ sequence_number: 0, ...event })}\n\n`
}

/** Answers each request that has come whole, and counts the connections. */
async function serve(answer: (response: ServerResponse) => void) {
  let sockets = 0
  const server = createServer((request: IncomingMessage, response) => {
    request.resume().on('end', () => answer(response))
  })
  server.on('connection', () => (sockets += 1))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const model = openai('gpt-5', { apiKey: 'k', baseUrl: `http://127.0.0.1:${port}/v1` })
  const harness = new Harness({ model, builtinTools: [], tools: [look] })
  return { harness, sockets: () => sockets, close: () => server.closeAllConnections() }
}

/** The least of the turns in the middle of a run: what comes from outside only adds. The first runs compile. */
async function countsOfTurn(now: Now): Promise<Counts> {
  const replies = Array.from({ length: TURNS }, (_, index) =>
    Buffer.from(JSON.stringify(replyOf(index, index < TURNS - 1 ? callOf(index) : said('Done.')))),
  )
  let turn = 0
  let moments: Counts[] = []
  const { harness, sockets, close } = await serve((response) => {
    moments.push(now())
    response.setHeader('content-type', 'application/json')
    response.end(replies[turn++])
  })
  for (let run = 0; run < 5; run++) {
    turn = 0
    moments = []
    const { text } = await harness.run('Look.')
    if (text !== 'Done.' || moments.length !== TURNS) throw new Error(`Expected ${TURNS} turns, got "${text}".`)
  }
  close()
  const turns = moments.slice(3).map((after, index) => difference(moments[index + 2] ?? after, after))
  return { ...leastOf(turns), sockets: sockets() }
}

/** The difference between two streams, for each delta by which one is longer. */
async function countsOfDelta(now: Now): Promise<Counts> {
  const streams = { 1000: streamOf(1000), 3000: streamOf(3000) }
  let deltas: keyof typeof streams = 1000
  let sendNext = (): void => undefined
  const { harness, close } = await serve((response) => {
    response.setHeader('content-type', 'text/event-stream')
    const pieces = streams[deltas].values()
    sendNext = () => {
      const { value, done } = pieces.next()
      if (done === true) response.end()
      else response.write(value)
    }
    sendNext()
  })
  const measured = async (length: keyof typeof streams): Promise<Counts> => {
    deltas = length
    const before = now()
    let read = 0
    const stream = harness.stream('Say.', { deltas: true })
    for await (const { kind } of stream) {
      // Deltas that wait for their reader would be joined: the next piece is sent when the last is read.
      if (kind === 'text_delta' && ++read % A_PIECE === 0) sendNext()
      if (read === length) sendNext()
    }
    if (read !== length) throw new Error(`Expected ${length} deltas, got ${read}.`)
    return difference(before, now())
  }
  await measured(1000)
  const pairs: Counts[] = []
  for (let pair = 0; pair < 3; pair++) pairs.push(difference(await measured(1000), await measured(3000)))
  close()
  return Object.fromEntries(Object.entries(leastOf(pairs)).map(([kind, count]) => [kind, count / 2000]))
}

/** Of each kind. A negative difference is one with a collection of garbage. */
function leastOf(all: readonly Counts[]): Counts {
  const kinds = Object.keys(all[0] ?? {})
  const least = kinds.map((kind) => Math.min(...all.flatMap(({ [kind]: count = NaN }) => (count < 0 ? [] : [count]))))
  return Object.fromEntries(kinds.map((kind, index) => [kind, least[index] ?? NaN]))
}

function difference(before: Counts, after: Counts): Counts {
  return Object.fromEntries(Object.entries(after).map(([kind, count]) => [kind, count - (before[kind] ?? NaN)]))
}

/** Counts calls of `JSON.stringify` and `JSON.parse`, promises, functions that go on after one, and calls of functions of the package. */
function counting(): Now {
  const counted = { encoded: 0, decoded: 0, promises: 0, resumed: 0, calls: 0 }
  const { stringify, parse } = JSON
  JSON.stringify = ((...given: Parameters<typeof stringify>) => {
    counted.encoded += 1
    return stringify(...given)
  }) as typeof stringify
  JSON.parse = (...given) => {
    counted.decoded += 1
    return parse(...given) as unknown
  }
  promiseHooks.createHook({ init: () => (counted.promises += 1), before: () => (counted.resumed += 1) })
  const session = new Session()
  session.connect()
  session.post('Profiler.enable')
  session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  return () => {
    session.post('Profiler.takePreciseCoverage', (_error, { result }: Profiler.TakePreciseCoverageReturnType) => {
      for (const { url, functions } of result) {
        if (!url.includes('/.build/src/')) continue
        for (const { ranges } of functions) counted.calls += ranges[0]?.count ?? 0
      }
    })
    return { ...counted }
  }
}

/** Of the whole process: the provider's end of each exchange is among them. Its heap must have room, so that nothing is collected. */
const bytes: Now = () => ({ bytes: process.memoryUsage().heapUsed })
const allocated = { turn: await countsOfTurn(bytes), delta: await countsOfDelta(bytes) }
const now = counting()
const counted = { turn: await countsOfTurn(now), delta: await countsOfDelta(now) }
const all = {
  turn: { ...allocated.turn, ...counted.turn },
  delta: { ...allocated.delta, ...counted.delta },
}
process.stdout.write(`${JSON.stringify(all)}\n`, () => process.exit())
