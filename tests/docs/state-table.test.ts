import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { defineExtension, defineTool, Harness, HarnessError, inputPort, memoryLog } from 'thinharness'
import type { DurableEvent, HarnessOptions } from 'thinharness'
import { clearResults } from 'thinharness/context'
import { ScriptedModel } from 'thinharness/testing'
import { failureOf } from '../harness/support.js'
import { eventDeclarations } from '../../scripts/event-declarations.js'
import { apply, stateAtFirst } from '#core/loop/apply.js'
import { isReference } from '#core/state/history.js'
import type { RunState } from '#core/state/state.js'

const CORPUS = fileURLToPath(new URL('../corpus/', import.meta.url))
const PAGE = '../../docs/states.md'
const STATES = ['queued', 'opening', 'asking', 'answered', 'batch', 'paused', 'ended'] as const
type State = (typeof STATES)[number]

/** A run whose log shows some of the transitions. */
interface Scenario {
  readonly name: string
  readonly events: readonly DurableEvent[]
}

function stateName({ phase, queued, paused }: RunState): State {
  if (queued === true) return 'queued'
  return paused === undefined ? phase.at : 'paused'
}

/** `<kind>/<state>` → the states that follow, each with the first scenario that shows it. */
function transitionsOf(scenarios: readonly Scenario[]): ReadonlyMap<string, ReadonlyMap<State, string>> {
  const seen = new Map<string, Map<State, string>>()
  for (const { name, events } of scenarios) {
    let state: RunState | null = null
    for (const event of events) {
      const before: State | 'none' = state === null ? 'none' : stateName(state)
      if (state === null) {
        if (event.kind === 'run_started' && (isReference(event.history) || event.state !== undefined)) break
        state = stateAtFirst(event)
      } else state = apply(state, event)
      const key = `${event.kind}/${before}`
      const next = seen.get(key) ?? new Map<State, string>()
      seen.set(key, next)
      if (!next.has(stateName(state))) next.set(stateName(state), name)
    }
  }
  return seen
}

/** The runs of the corpus that begin in their own log, each without its children. */
function corpus(): Scenario[] {
  const newest =
    readdirSync(CORPUS)
      .filter((name) => /^v\d+$/.test(name))
      .sort()
      .at(-1) ?? ''
  const files = readdirSync(`${CORPUS}${newest}`).filter((name) => name.endsWith('.jsonl'))
  return files.sort().map((file) => {
    const lines = readFileSync(`${CORPUS}${newest}/${file}`, 'utf8').trim().split('\n')
    const events = lines.map((line) => JSON.parse(line) as DurableEvent)
    const top = events.find(({ parentRunId }) => parentRunId === null)
    return { name: file.replace('.jsonl', ''), events: events.filter(({ runId }) => runId === top?.runId) }
  })
}

async function recorded(name: string, act: (options: HarnessOptions<unknown>) => Promise<string>): Promise<Scenario> {
  const log = memoryLog()
  const runId = await act({ log, builtinTools: [] })
  const events: DurableEvent[] = []
  for await (const event of log.read({ kind: 'run', id: runId })) events.push(event)
  return { name, events }
}

const LOOK = { name: 'look', description: 'Looks.', parameters: z.object({}), annotations: { readOnly: true } }
const look = defineTool({ ...LOOK, handler: () => 'seen' })

/** A run whose process ended in the middle of a call. */
function recovered(): Promise<Scenario> {
  const wait = defineTool({ ...LOOK, name: 'wait', annotations: {}, handler: () => 'over' })
  return recorded('recovered', async (options) => {
    const whole = await recorded('whole', async (other) => {
      const model = new ScriptedModel().calls('wait', {}).says('Done.')
      return (await new Harness<unknown>({ ...other, model, tools: [wait] }).run('Go.')).runId
    })
    const last = whole.events.findIndex(({ kind }) => kind === 'tool_call_started')
    const runId = whole.events[0]?.runId ?? ''
    const log = options.log ?? memoryLog()
    await log.append({ kind: 'run', id: runId }, whole.events.slice(0, last + 1))
    return (
      await new Harness<unknown>({ ...options, model: new ScriptedModel().says('Done.'), tools: [wait] }).recover(runId)
    ).runId
  })
}

function scenarios(): Promise<Scenario[]> {
  return Promise.all([
    recorded('queued', async (options) => {
      const model = new ScriptedModel().says('Done.')
      const harness = new Harness<unknown>({ ...options, model })
      const { runId } = await harness.queue('Go.')
      await harness.recover(runId)
      return runId
    }),
    recorded('queued_and_cancelled', async (options) => {
      const harness = new Harness<unknown>(options)
      const { runId } = await harness.queue('Go.')
      await harness.cancel(runId)
      return runId
    }),
    recorded('steered', async (options) => {
      const input = inputPort()
      const model = new ScriptedModel().calls('look', {}).says('Done.')
      const run = new Harness<unknown>({ ...options, model, tools: [look] }).stream('Go.', { input })
      void input.send('And quickly.')
      return (await run.result).runId
    }),
    recorded('answer_corrected', async (options) => {
      const model = new ScriptedModel().says('no').says('{"n":1}')
      const harness = new Harness({
        ...options,
        model,
        outputType: z.object({ n: z.number() }),
        outputMode: 'prompted',
      })
      return (await harness.run('Go.')).runId
    }),
    recorded('budget_notice', async (options) => {
      const model = new ScriptedModel().calls('look', {}).says('Done.')
      return (await new Harness<unknown>({ ...options, model, tools: [look], limits: { modelRequests: 2 } }).run('Go.'))
        .runId
    }),
    recorded('recorded_by_extension', async (options) => {
      const model = new ScriptedModel().calls('look', {}).says('Done.')
      const notes = defineExtension({
        name: 'notes',
        forRun: ({ record }) => ({
          hooks: [{ event: 'before_tool_call', handler: () => record('seen').then(() => undefined) }],
        }),
      })
      return (await new Harness<unknown>({ ...options, model, tools: [look], use: [notes] }).run('Go.')).runId
    }),
    recorded('cleared_results', async (options) => {
      const long = defineTool({ ...LOOK, handler: () => 'seen '.repeat(4000) })
      const model = new ScriptedModel({ capabilities: { contextTokens: 12_000 } })
      for (let turn = 0; turn < 6; turn++) model.calls('look', {})
      model.says('Done.')
      return (await new Harness<unknown>({ ...options, model, tools: [long], use: [clearResults()] }).run('Go.')).runId
    }),
    recorded('provider_failed', async (options) => {
      const model = new ScriptedModel().fails(new HarnessError('provider_error', 'Down.'))
      const { run } = await failureOf(new Harness<unknown>({ ...options, model }).run('Go.'))
      return run.runId
    }),
    recovered(),
    recorded('failed_hook', async (options) => {
      const model = new ScriptedModel().says('Done.')
      const hooks = [{ event: 'run_end' as const, handler: () => Promise.reject(new Error('no')) }]
      return (await new Harness<unknown>({ ...options, model, hooks }).run('Go.')).runId
    }),
  ])
}

function cell(next: ReadonlyMap<State, string> | undefined): string {
  return next === undefined ? '' : [...next.keys()].sort().join(', ')
}

test('docs/states.md lists what every event does in every state, as the recorded runs show it', async () => {
  const seen = transitionsOf([...corpus(), ...(await scenarios())])
  const durable = [...eventDeclarations()].filter(([, text]) => text.includes('durable: true')).map(([kind]) => kind)
  const rows = durable.flatMap((kind) => {
    const cells = ['none', ...STATES].map((state) => cell(seen.get(`${kind}/${state}`)))
    const names = new Set(['none', ...STATES].flatMap((state) => [...(seen.get(`${kind}/${state}`)?.values() ?? [])]))
    return [`| \`${kind}\` | ${cells.join(' | ')} | ${[...names].sort().join(', ')} |`]
  })
  const table = [
    `| event | first event | ${STATES.join(' | ')} | pinned by |`,
    `| --- |${' --- |'.repeat(STATES.length + 2)}`,
    ...rows,
  ]
  await expect(
    `${PREFACE}\n<!-- prettier-ignore-start -->\n\n${table.join('\n')}\n\n<!-- prettier-ignore-end -->\n`,
  ).toMatchFileSnapshot(PAGE)
  expect(seen.get('run_completed/answered')?.has('ended')).toBe(true)
})

const PREFACE = `# States of a run

\`apply(state, event)\` is the only way in which the state of a run changes. Each row is a kind of durable event, each column the
state before it, and the cell the states that followed it in the recorded runs of the last column (\`tests/corpus\`, and the scenarios
of \`tests/docs/state-table.test.ts\`). An empty cell means that no recorded run has that event in that state. The page is generated by
that test: \`npx vitest run tests/docs/state-table.test.ts --update\` writes it, and the test fails when the page is out of date.

| state | the run |
| --- | --- |
| queued | waits to be begun |
| opening | has begun; its first request has not |
| asking | has sent a request, whose reply is not stored yet |
| answered | has a reply that is no batch: an answer, or a reason to ask again |
| batch | has the tool calls of a reply in hand |
| paused | waits for people |
| ended | has its result or its error |
`
