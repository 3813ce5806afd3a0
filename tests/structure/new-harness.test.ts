import { Session } from 'node:inspector'
import type { Profiler } from 'node:inspector'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { Harness, defineTool } from 'thinharness'
import type { ToolSpec } from 'thinharness'
import { openai } from 'thinharness/providers'

/** Calls of functions of the source for a harness with one tool, once its modules are loaded. */
const MOST_FOR_A_HARNESS = 42
/** For a tool whose schema emits what an earlier one did, as servers make one for each request. */
const MOST_FOR_A_TOOL = 25
/** More in a run of a new harness with a new model and a new tool than in one of a harness that has run before. */
const MOST_MORE_IN_A_RUN = 160

const reply = {
  ...{ id: 'resp_1', object: 'response', status: 'completed', model: 'gpt-5' },
  output: [{ type: 'message', id: 'msg_1', role: 'assistant', content: [{ type: 'output_text', text: 'Done.' }] }],
  usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 },
}

const newModel = () => openai('gpt-5', { apiKey: 'k', fetch: () => Promise.resolve(Response.json(reply)) })

const newTool = (): ToolSpec =>
  defineTool({
    name: 'look',
    description: 'Looks something up.',
    parameters: z.object({ id: z.string().describe('Its id.') }),
    handler: () => 'Found.',
  })

const newHarness = (model = newModel(), tool = newTool()): Harness =>
  new Harness({ model, builtinTools: [], tools: [tool], limits: { modelRequests: 10 } })

test(`a harness with a tool and a model that others have is made by at most ${MOST_FOR_A_HARNESS} calls`, async () => {
  const [model, tool] = [newModel(), newTool()]
  const calls = await callsDuring(() => newHarness(model, tool))
  expect(sumOf(calls), shown(calls)).toBeGreaterThan(10)
  expect(sumOf(calls), shown(calls)).toBeLessThanOrEqual(MOST_FOR_A_HARNESS)
})

test(`a tool with the schema of an earlier one is made by at most ${MOST_FOR_A_TOOL} calls, none of which cleans it`, async () => {
  expect(newTool().parameters).toBe(newTool().parameters)
  const calls = await callsDuring(newTool)
  expect([...calls.keys()].filter((name) => name.startsWith('schema/clean-schema'))).toEqual([])
  expect(sumOf(calls), shown(calls)).toBeLessThanOrEqual(MOST_FOR_A_TOOL)
})

test(`a run of a new harness with a new tool and a new model takes at most ${MOST_MORE_IN_A_RUN} calls more than a further run`, async () => {
  const harness = newHarness()
  const run = async (of: Harness): Promise<void> => expect((await of.run('Look.')).text).toBe('Done.')
  await run(harness)
  const [again, anew] = [await callsDuring(() => run(harness)), await callsDuring(() => run(newHarness()))]
  expect(sumOf(anew) - sumOf(again), shown(anew)).toBeLessThanOrEqual(MOST_MORE_IN_A_RUN)
})

type Calls = ReadonlyMap<string, number>

/** The calls of each function of the source, by file and name; the least of three times, since timers of others may run too. */
async function callsDuring(work: () => unknown): Promise<Calls> {
  const session = new Session()
  session.connect()
  session.post('Profiler.enable')
  session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  const all: Calls[] = []
  for (let count = 0; count < 4; count++) {
    session.post('Profiler.takePreciseCoverage')
    await work()
    session.post('Profiler.takePreciseCoverage', (_error, { result }) => void all.push(callsIn(result)))
  }
  session.post('Profiler.stopPreciseCoverage')
  session.disconnect()
  // The first time compiles and fills caches.
  return all.slice(1).reduce((one, other) => (sumOf(other) < sumOf(one) ? other : one))
}

function callsIn(scripts: readonly Profiler.ScriptCoverage[]): Calls {
  const calls = new Map<string, number>()
  for (const { url, functions } of scripts) {
    const file = /\/src\/(.*)\.ts/.exec(url)?.[1]
    if (file === undefined) continue
    // Functions without a name are callbacks, and accessors that the test runner adds for each export.
    for (const { functionName, ranges } of functions) {
      const [range] = ranges
      if (range !== undefined && range.count > 0 && functionName !== '')
        calls.set(`${file}: ${functionName}@${range.startOffset}`, range.count)
    }
  }
  return calls
}

function sumOf(calls: Calls): number {
  return [...calls.values()].reduce((sum, count) => sum + count, 0)
}

function shown(calls: Calls): string {
  return `${sumOf(calls)} calls:\n${[...calls].map(([name, count]) => `${name} ×${count}`).join('\n')}`
}
