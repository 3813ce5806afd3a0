import fc from 'fast-check'
import { beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { memoryLog } from 'thinharness'
import type { DurableEvent } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { createHandlers, createHub, toUIMessages } from 'thinharness/ui'
import type { AnyRunEvent } from 'thinharness/ui'
import { toAgUiMessages, agUiProjection } from '#adapters/ui/ag-ui/ag-ui-projection.js'
import { uiMessageProjection } from '#adapters/ui/ai-sdk/ui-projection.js'
import { nativeProjection } from '#adapters/ui/native/native-projection.js'
import { responsesProjection } from '#adapters/ui/responses/responses-projection.js'
import type { Projection } from '#adapters/ui/projection.js'
import { harnessOf, told, tool } from '../../harness/support.js'
import { collect, eventsOfRun } from '../../support/collect.js'
import { rounds, timeLimit } from '../../support/length.js'
import { plannedRuns } from './support/plans.js'
import { record } from './support/recorded-run.js'
import type { RecordedRun } from './support/recorded-run.js'

const PROTOCOLS = {
  native: (diagnostics: boolean): Projection<unknown> => nativeProjection({ diagnostics, children: true }),
  'AI SDK 5': (diagnostics: boolean): Projection<unknown> => uiMessageProjection({ diagnostics, dialect: 5 }),
  'AI SDK 6': (diagnostics: boolean): Projection<unknown> => uiMessageProjection({ diagnostics, dialect: 6 }),
  'AI SDK 7': (diagnostics: boolean): Projection<unknown> => uiMessageProjection({ diagnostics, dialect: 7 }),
  'Open Responses': (): Projection<unknown> => responsesProjection(),
  'AG-UI': (diagnostics: boolean): Projection<unknown> => agUiProjection({ diagnostics, activities: true }),
}
const NAMES = Object.keys(PROTOCOLS) as (keyof typeof PROTOCOLS)[]

function itemsOf(events: readonly AnyRunEvent[], name: keyof typeof PROTOCOLS, diagnostics = false): unknown[] {
  const projection = PROTOCOLS[name](diagnostics)
  return [...events.flatMap((event) => [...projection.next(event)]), ...projection.end()]
}

const copyOf = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T

const { seed = Math.floor(Math.random() * 2 ** 31), numRuns } = rounds(60)
/** Runs from another seed each time, for every protocol the same. */
const RUNS: RecordedRun[] = []
beforeAll(async () => {
  for (const planned of fc.sample(plannedRuns(), { seed, numRuns })) RUNS.push(await record(planned))
}, timeLimit(120_000))

test.each(NAMES)('XL-02 the same events give the same items: %s', (name) => {
  for (const { stored } of RUNS) {
    const [one, other] = [itemsOf(stored, name), itemsOf(copyOf(stored), name)]
    expect(JSON.stringify(one), `seed ${seed}`).toBe(JSON.stringify(other))
  }
})

/** Events that need no item: what they say is in others. */
const SAID_BY_OTHERS: Readonly<Record<keyof typeof PROTOCOLS, readonly string[]>> = {
  native: [],
  'AI SDK 5': ['approval_resumed', 'call_prepared'],
  'AI SDK 6': ['approval_resumed', 'call_prepared'],
  'AI SDK 7': ['approval_resumed', 'call_prepared', 'tool_call_started'],
  // A response has the items of the run itself, and its end what waits; there is no item for other events.
  'Open Responses': [
    ...['answer_received', 'approval_requested', 'approval_resumed', 'background_reported', 'call_prepared'],
    ...[
      'hook_failed',
      'limit_warning',
      'model_retry',
      'output_delta',
      'tool_call_started',
      'tool_progress',
      'transport_retry',
      'warning',
    ],
  ],
  'AG-UI': ['approval_requested', 'approval_resumed', 'background_reported'],
}

test.each(NAMES)('XL-06 XL-16 every kind of event has items, or only diagnoses: %s', (name) => {
  const silent = new Set<string>()
  const heard = new Set<string>()
  for (const { live, runId } of RUNS) {
    const [projection, plain] = [PROTOCOLS[name](true), PROTOCOLS[name](false)]
    for (const event of live) {
      const items = projection.next(event)
      const count = plain.next(event).length
      const diagnoses = ['limit_warning', 'model_retry', 'hook_failed', 'warning'].includes(event.kind)
      if (diagnoses) expect(count, `${event.kind}, seed ${seed}`).toBe(0)
      if (event.runId === runId) (items.length > 0 ? heard : silent).add(event.kind)
    }
  }
  const never = [...silent].filter((kind) => !heard.has(kind) && !SAID_BY_OTHERS[name].includes(kind))
  // Of a pause and an end, the last items of a stream tell.
  const ends = ['run_completed', 'run_failed', 'run_started']
  expect(
    never.filter((kind) => !ends.includes(kind)),
    `seed ${seed}`,
  ).toEqual([])
})

test.each(NAMES.filter((name) => !['AI SDK 5', 'AI SDK 6', 'Open Responses'].includes(name)))(
  'XL-08 deltas that the reply does not begin with are withdrawn, and it is told whole: %s',
  async (name) => {
    const log = memoryLog()
    const harness = harnessOf({ model: new ScriptedModel().says('The right answer.'), log })
    const { events } = await told(harness.stream('Hi.', { runId: 'run_1' }))
    const wrong = events.map((event): AnyRunEvent =>
      event.kind === 'text_delta' ? { ...event, text: 'A wrong ' } : event,
    )
    const text = JSON.stringify(itemsOf(wrong, name))
    if (name === 'native') expect(text).toContain('The right answer.')
    else
      expect(text).toMatch(
        name === 'AG-UI' ? /MESSAGES_SNAPSHOT.*The right answer\./ : /reset-step.*The right answer\./,
      )
    const messages = toUIMessages(wrong)
    expect(JSON.stringify(messages)).not.toContain('wrong')
  },
)

test('XL-13 an event is sent when it is stored, in the order of its number, and no delta overtakes its request', async () => {
  const log = memoryLog()
  const stored: number[] = []
  const append = log.append.bind(log)
  vi.spyOn(log, 'append').mockImplementation(async (ref, events, ...claim) => {
    await new Promise((resolve) => setTimeout(resolve, 2))
    await append(ref, events, ...claim)
    stored.push(...events.map(({ seq }) => seq))
  })
  const model = new ScriptedModel().calls('look').says('Done.')
  const harness = harnessOf({ model, tools: [tool('look')], log })
  onTestFinished(() => harness.close())
  const hub = createHub({ log })
  await hub.start(harness.stream('Hi.', { runId: 'run_1' }))
  let seq = 0
  for await (const event of hub.follow('run_1')) {
    if (event.durable) {
      expect(event.seq).toBe(seq + 1)
      seq = event.seq
    }
    expect(stored).toContain(event.seq)
    expect(event.seq).toBeLessThanOrEqual(seq)
  }
  expect(seq).toBe(stored.at(-1))
})

test('XL-03 CO-03 a served run stores what a run alone stores, and its pause is reported from the log alone', async () => {
  const model = (): ScriptedModel => new ScriptedModel().calls('pay', { n: 1 }).says('Done.')
  const tools = [tool('pay', () => 'paid', { requiresApproval: true })]
  const [alone, served] = [memoryLog(), memoryLog()]
  await harnessOf({ model: model(), tools, log: alone }).run('Pay.', { runId: 'run_1' })
  const harness = harnessOf({ model: model(), tools, log: served })
  onTestFinished(() => harness.close())
  const { aiSdk } = createHandlers({ harness, log: served })
  const messages = [{ id: 'm1', role: 'user', parts: [{ type: 'text', text: 'Pay.' }] }]
  const body = JSON.stringify({ id: 't1', messages })
  await (await aiSdk(new Request('http://localhost/chat', { method: 'POST', body }))).text()
  const runs: string[] = []
  for await (const { runId } of served.list({ kind: 'run' })) runs.push(runId)
  expect(runs).toHaveLength(1)
  const kinds = (events: readonly AnyRunEvent[]): string[] => events.map(({ kind }) => kind)
  const ofServed = copyOf(await eventsOfRun(served, runs[0] ?? ''))
  expect(kinds(ofServed)).toEqual(kinds(await eventsOfRun(alone, 'run_1')))
  expect(JSON.stringify(toUIMessages(ofServed))).toContain('"state":"approval-requested"')
  const items = JSON.stringify([...itemsOf(ofServed, 'AG-UI'), toAgUiMessages(ofServed)])
  expect(items).toContain('"type":"interrupt"')
  expect(items).toContain('"reason":"tool_call"')
})

test('CO-01 every delta of the arguments of a call names its tool', async () => {
  const harness = harnessOf({ model: new ScriptedModel().calls('look', { n: 1 }).says('Done.'), tools: [tool('look')] })
  const { events } = await told(harness.stream('Hi.'))
  const names = events.flatMap((event) => (event.kind === 'tool_input_delta' ? [event.toolName] : []))
  expect(new Set(names)).toEqual(new Set(['look']))
})

test('CO-02 a message that a person gave to the run is an entry without `notice`; those of the harness have it', async () => {
  const log = memoryLog()
  let steer: (text: string) => unknown = () => undefined
  const look = tool('look', () => void steer('Be brief.'))
  const model = new ScriptedModel().calls('look').says('Done.')
  const harness = harnessOf({ model, tools: [look], log, limits: { modelRequests: 3 } })
  const stream = harness.stream('Hi.', { runId: 'run_1' })
  steer = (text) => stream.steer(text)
  await stream.result
  const events: readonly DurableEvent[] = await collect(log.read({ kind: 'run', id: 'run_1' }))
  const said = events.flatMap((event) => (event.kind === 'model_request_started' ? event.entries : []))
  const users = said.filter(({ role }) => role === 'user')
  expect(users).toMatchObject([{ content: [{ type: 'text', text: 'Be brief.' }] }])
  expect(users[0]).not.toHaveProperty('notice')
})
