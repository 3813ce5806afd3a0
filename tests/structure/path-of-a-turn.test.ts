import { Session } from 'node:inspector'
import { afterEach, expect, test } from 'vitest'
import { Harness, defineTool } from 'thinharness'
import type { Model } from 'thinharness'
import { anthropic } from 'thinharness/providers'
import type { Profiler } from 'node:inspector'

/** Frames from the beginning of a run to the function of the transport that posts. */
const MOST_FRAMES = 14
/** Of the source, from a reply with one call to the next request. */
const MOST_FILES = 58
// V8 does not count closures that have been collected: up to 15 of them.
const MOST_FUNCTIONS = 230

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
  const session = new Session()
  session.connect()
  // The first run compiles and fills caches. Of three more, the smallest counts: timers of an earlier run are not of the turn.
  await runOneCall(() => undefined)
  session.post('Debugger.enable')
  session.post('Profiler.enable')
  session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  const runs = [await executedBy(session), await executedBy(session), await executedBy(session)]
  session.post('Profiler.stopPreciseCoverage')
  session.disconnect()
  const executed = runs.reduce((one, other) => (functionsIn(other) < functionsIn(one) ? other : one))
  const functions = functionsIn(executed)
  const list = [...executed].map(([file, names]) => `${file}: ${[...names].join(', ')}`).sort()
  const shown = `${executed.size} files, ${functions} functions:\n${list.join('\n')}`
  expect(executed.size, shown).toBeGreaterThan(10)
  expect(executed.size, shown).toBeLessThanOrEqual(MOST_FILES)
  expect(functions, shown).toBeLessThanOrEqual(MOST_FUNCTIONS)
})

type Executed = Map<string, Set<string>>

/** The functions that one turn executes, by file. */
async function executedBy(session: Session): Promise<Executed> {
  const executed: Executed = new Map()
  const take = (isMeasured: boolean): void =>
    session.post('Profiler.takePreciseCoverage', (_error, { result }) => {
      if (isMeasured) for (const script of result) note(session, script, executed)
    })
  await runOneCall((count) => take(count === 2))
  return executed
}

function functionsIn(executed: Executed): number {
  return [...executed.values()].reduce((sum, names) => sum + names.size, 0)
}

/** What the test runner adds: an accessor for each export. */
const EXPORTED = /^\(\) => \{ try \{ return [\w$]+;? \} catch \{\} \}$/

/** The functions of the source that were called. */
function note(session: Session, { scriptId, url, functions }: Profiler.ScriptCoverage, executed: Executed): void {
  const file = /\/src\/(.*)\.ts/.exec(url)?.[1]
  if (file === undefined) return
  let source = ''
  session.post('Debugger.getScriptSource', { scriptId }, (_error, { scriptSource }) => (source = scriptSource))
  for (const { functionName, ranges } of functions) {
    const [range] = ranges
    if (range === undefined || range.count === 0) continue
    if (EXPORTED.test(source.slice(range.startOffset, range.endOffset))) continue
    const names = executed.get(file) ?? new Set()
    names.add(`${functionName || 'anonymous'}@${range.startOffset}`)
    executed.set(file, names)
  }
}
