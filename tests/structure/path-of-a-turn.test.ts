import { afterEach, expect, test } from 'vitest'
import { Harness, defineTool } from 'thinharness'
import type { Model } from 'thinharness'
import { anthropic } from 'thinharness/providers'
import { executedSince, functionsIn, listed, profiled } from './executed.js'
import type { Executed } from './executed.js'

/** Frames from the beginning of a run to the function of the transport that posts. */
const MOST_FRAMES = 14
/** Of the source, from a reply with one call to the next request. */
const MOST_FILES = 58
// V8 does not count closures that have been collected: up to 15 of them.
const MOST_FUNCTIONS = 230

const session = profiled()

const REPLIES = [
  [{ type: 'tool_use', id: 'toolu_1', name: 'look', input: { id: 'a' } }],
  [{ type: 'text', text: 'Done.' }],
]

const look = defineTool({
  name: 'look',
  description: 'Looks something up.',
  parameters: { type: 'object', properties: { id: { type: 'string' } }, required: ['id'], additionalProperties: false },
  handler: () => 'Found.',
})

/** Runs one tool call against an API that calls `onRequest` at each request. */
async function runOneCall(onRequest: (count: number) => void, onTurn = (): void => undefined): Promise<string> {
  let count = 0
  const fetch = (): Promise<Response> => {
    onRequest((count += 1))
    const content = REPLIES[count - 1] ?? []
    const reply = {
      ...{ id: `msg_${count}`, type: 'message', role: 'assistant', model: 'claude-sonnet-5', content },
      stop_reason: count === 1 ? 'tool_use' : 'end_turn',
      usage: { input_tokens: 1, output_tokens: 1 },
    }
    return Promise.resolve(Response.json(reply))
  }
  const asked = anthropic('claude-sonnet-5', { apiKey: 'k', fetch })
  const openSession: Model['openSession'] = (run) => {
    const session = asked.openSession(run)
    const turn: typeof session.turn = (...given) => {
      onTurn()
      return session.turn(...given)
    }
    return { turn }
  }
  const model: Model = Object.assign(Object.create(asked) as Model, { openSession })
  return (await new Harness({ model, builtinTools: [], tools: [look] }).run('Look.')).text
}

const limit = Error.stackTraceLimit
afterEach(() => {
  Error.stackTraceLimit = limit
})

test('a request passes at most 14 frames from the beginning of its run to the transport', async () => {
  // The first request to an adapter loads its format.
  await runOneCall(() => undefined)
  Error.stackTraceLimit = Infinity
  const stacks: string[] = []
  const note = (): void => void stacks.push(new Error('Here.').stack ?? '')
  expect(await runOneCall(note, note)).toBe('Done.')
  // A reservation may be waited for between the two: the stack of the request begins at the session.
  const [ofTurn = [], ofRequest = []] = stacks.map((stack) =>
    stack.split('\n').filter((line) => line.includes('/src/')),
  )
  const path = [
    ...ofRequest.slice(ofRequest.findLastIndex((line) => line.includes('/src/providers/http/http-transport'))),
    ...ofTurn.slice(0, ofTurn.findLastIndex((line) => line.includes('/src/core/loop/')) + 1),
  ]
  expect(path.length, `${path.length} frames:\n${path.join('\n')}`).toBeGreaterThan(5)
  expect(path.length, `${path.length} frames:\n${path.join('\n')}`).toBeLessThanOrEqual(MOST_FRAMES)
})

test(`a turn with one call executes at most ${MOST_FILES} files and ${MOST_FUNCTIONS} functions`, async () => {
  // The first run compiles and fills caches. Of three more, the smallest counts: timers of an earlier run are not of the turn.
  await runOneCall(() => undefined)
  const runs = [await executedBy(session), await executedBy(session), await executedBy(session)]
  const executed = runs.reduce((one, other) => (functionsIn(other) < functionsIn(one) ? other : one))
  const shown = listed(executed)
  expect(executed.size, shown).toBeGreaterThan(10)
  expect(executed.size, shown).toBeLessThanOrEqual(MOST_FILES)
  expect(functionsIn(executed), shown).toBeLessThanOrEqual(MOST_FUNCTIONS)
})

/** The functions that one turn executes, by file. */
async function executedBy(profiler: typeof session): Promise<Executed> {
  let executed: Executed = new Map()
  await runOneCall((count) => {
    const since = executedSince(profiler)
    if (count === 2) executed = since
  })
  return executed
}
