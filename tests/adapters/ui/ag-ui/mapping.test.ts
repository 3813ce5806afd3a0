import fc from 'fast-check'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { defineTool, memoryLog } from 'thinharness'
import type { HarnessOptions, ToolSpec } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { createHandlers, toAgUi } from 'thinharness/ui'
import type { AnyRunEvent } from 'thinharness/ui'
import type { AgUiEvent, AgUiEventOf } from '#adapters/ui/ag-ui/event.js'
import { harnessOf, told, tool } from '../../../harness/support.js'
import { gate } from '../../../session/support.js'
import { collect } from '../../../support/collect.js'
import { GENERATED, generated } from '../support/generated.js'
import { plannedRuns } from '../support/plans.js'
import { record, storedOf } from '../support/recorded-run.js'
import { Client, eventsOf } from './client.js'

const IDS = { threadId: 'chat_1', runId: 'stretch_1' }

async function ran(
  model: ScriptedModel,
  tools: ToolSpec[],
  more: HarnessOptions<unknown> = {},
): Promise<readonly AnyRunEvent[]> {
  const log = memoryLog()
  const harness = harnessOf<unknown>({ model, tools, log, ...more })
  onTestFinished(() => harness.close({ runs: 'cancel' }))
  await told(harness.stream('Hi.', { runId: 'run_1' }))
  return (await storedOf(log, 'run_1')).stored
}

function of<Type extends AgUiEvent['type']>(events: readonly AgUiEvent[], type: Type): readonly AgUiEventOf<Type>[] {
  return events.filter((event): event is AgUiEventOf<Type> => event.type === type)
}

const pay = tool('pay', () => 'paid', { requiresApproval: true })

test(
  'AG-04 AG-22 no member is null, and no text comes under the id of a message of a snapshot',
  GENERATED,
  async () => {
    const runs = fc.asyncProperty(plannedRuns(), async (planned) => {
      const { live } = await record(planned)
      const known = new Set<string>()
      for (const event of eventsOf(live, IDS)) {
        const { metadata: _, ...members } = event
        expect(Object.values(members), event.type).not.toContain(null)
        if (event.type === 'MESSAGES_SNAPSHOT') for (const message of event.messages) known.add(message.id)
        if (event.type === 'TEXT_MESSAGE_CONTENT') expect(known).not.toContain(event.messageId)
      }
    })
    await fc.assert(runs, generated(15))
  },
)

test('AG-22 a reply that arrives while another run takes a reply back is not in the snapshot, and is told again', async () => {
  const says = async (runId: string, text: string): Promise<readonly AnyRunEvent[]> => {
    const harness = harnessOf<unknown>({ model: new ScriptedModel().says(text) })
    return (await told(harness.stream('Hi.', { runId }))).events
  }
  const own = await says('run_1', 'One and two.')
  const child = (await says('run_2', 'Three.')).map((event) => ({ ...event, parentRunId: 'run_1' }))
  const isText = ({ kind }: AnyRunEvent): boolean => kind === 'text_delta'
  const [inOwn, inChild] = [own.findIndex(isText) + 1, child.findIndex(isText) + 1]
  const [lost] = child.slice(inChild - 1)
  const withdrawn = { ...lost, kind: 'deltas_withdrawn', attempt: 1 } as AnyRunEvent
  const live = [
    ...own.slice(0, inOwn),
    ...child.slice(0, inChild),
    withdrawn,
    ...child.slice(inChild - 1),
    ...own.slice(inOwn),
  ]
  const events = eventsOf(live, IDS)
  const given = of(events, 'MESSAGES_SNAPSHOT').flatMap(({ messages }) => messages.map(({ id }) => id))
  expect(given).toEqual(['e1'])
  expect(of(events, 'TEXT_MESSAGE_START').filter(({ subagentRunId }) => subagentRunId === undefined)).toHaveLength(2)
  const client = new Client([{ id: 'e1', role: 'user', content: 'Hi.' }])
  await client.read(events)
  expect(client.messages.map(({ content }) => content)).toEqual(expect.arrayContaining(['One and two.', 'Three.']))
})

test('AG-10 a pause closes runs in the background that have not ended as suspended', async () => {
  const { opened, open } = gate()
  const leave = defineTool({
    name: 'leave',
    description: 'Starts a run in the background.',
    parameters: z.object({}),
    onUnknownOutcome: 'retry',
    handler: (_, { spawn }) => spawn({ prompt: 'Later.', agentName: 'helper', tools: [], background: true }).runId,
  })
  const model = new ScriptedModel().always(async ({ transcript }) => {
    const [prompt] = transcript
    if (JSON.stringify(prompt).includes('Later.')) {
      await opened
      return 'Late.'
    }
    return transcript.length === 1
      ? { calls: [{ name: 'leave', arguments: {} }] }
      : { calls: [{ name: 'ask', arguments: {} }] }
  })
  const ask = tool('ask', (_, { ask: question }) => question('Which?', z.string()))
  const log = memoryLog()
  const harness = harnessOf({ model, tools: [leave, ask], log })
  onTestFinished(() => harness.close({ runs: 'cancel' }))
  const stream = harness.stream('Hi.', { runId: 'run_1' })
  const live: AnyRunEvent[] = []
  for await (const event of stream) {
    live.push(event)
    // Runs in the background are waited for until they ask or end.
    if (event.kind === 'approval_requested') open()
  }
  const events = eventsOf(live, IDS)
  const [begun] = of(events, 'SUBAGENT_STARTED')
  expect(begun).toMatchObject({ name: 'helper' })
  expect(of(events, 'SUBAGENT_FINISHED').map(({ subagentRunId }) => subagentRunId)).toEqual([begun?.subagentRunId])
  const cut = live.slice(0, live.findIndex(({ kind }) => kind === 'approval_requested') + 1)
  const suspended = eventsOf(cut, IDS)
  expect(of(suspended, 'SUBAGENT_FINISHED')).toMatchObject([{ outcome: { type: 'suspended' } }])
})

test('AG-13 usage has one entry a model, of this stretch alone, without counts that nobody gave', async () => {
  const log = memoryLog()
  const model = new ScriptedModel()
    .replies({
      calls: [{ name: 'pay', arguments: {} }],
      usage: { inputTokens: 10, outputTokens: 2, cacheReadTokens: 4, reasoningTokens: null, cacheWriteTokens: null },
    })
    .replies({ text: 'Done.', usage: { inputTokens: 20, outputTokens: 3, reasoningTokens: null } })
  const harness = harnessOf({ model, tools: [pay], log })
  onTestFinished(() => harness.close())
  const { events: first } = await told(harness.stream('Pay.', { runId: 'run_1' }))
  const { events: second } = await told(harness.streamResume('run_1', [{ callId: 'call_1', approved: true }]))
  const before = first.findLast(({ durable }) => durable)?.seq
  const usage = (events: readonly AnyRunEvent[], after = 0): unknown =>
    of(eventsOf(events, { ...IDS, after }), 'RUN_FINISHED')[0]?.usage
  expect(usage(first)).toEqual([
    {
      provider: 'scripted',
      model: 'scripted-1',
      inputTokens: 10,
      outputTokens: 2,
      cachedInputTokens: 4,
      totalTokens: 12,
    },
  ])
  const [ofSecond] = usage([...first, ...second], before) as readonly Readonly<Record<string, number>>[]
  expect(ofSecond).toMatchObject({ inputTokens: 20, outputTokens: 3, totalTokens: 23 })
  expect(ofSecond).not.toHaveProperty('reasoningTokens')
})

test('AG-13 the tokens of child runs are in the usage of the stretch', async () => {
  const delegate = defineTool({
    name: 'delegate',
    description: 'Starts a child run.',
    parameters: z.object({}),
    handler: async (_, { spawn }) => (await spawn({ prompt: 'Child.', agentName: 'agent', tools: [] }).result).text,
  })
  const usage = { inputTokens: 5, outputTokens: 1 }
  const model = new ScriptedModel().always(({ transcript }) =>
    transcript.length === 1 && !JSON.stringify(transcript).includes('Child.')
      ? { calls: [{ name: 'delegate', arguments: {} }], usage }
      : { text: 'Done.', usage },
  )
  const events = eventsOf(await ran(model, [delegate]), IDS)
  expect(of(events, 'RUN_FINISHED')[0]?.usage).toMatchObject([{ inputTokens: 15, outputTokens: 3 }])
})

test('AG-14 the state is one small object, sent as snapshots', async () => {
  const events = eventsOf(await ran(new ScriptedModel().calls('pay', {}), [pay]), IDS)
  const states = of(events, 'STATE_SNAPSHOT').map(({ snapshot }) => snapshot as Readonly<Record<string, unknown>>)
  expect(states.length).toBeGreaterThan(1)
  for (const state of states)
    expect(['pending', 'runId', 'seq', 'status', 'usage']).toEqual(expect.arrayContaining(Object.keys(state)))
  expect(states.at(-1)).toMatchObject({ runId: 'run_1', status: 'paused', usage: { modelRequests: 1 } })
  expect(events.some(({ type }) => (type as string) === 'STATE_DELTA')).toBe(false)
})

test('AG-20 an interrupt of a child run names the run that asks', async () => {
  const delegate = defineTool({
    name: 'delegate',
    description: 'Starts a child run.',
    parameters: z.object({}),
    handler: async (_, { spawn }) => (await spawn({ prompt: 'Child.', agentName: 'agent', tools: [pay] }).result).text,
  })
  const model = new ScriptedModel().always(({ transcript }) => ({
    calls: [{ name: JSON.stringify(transcript[0]).includes('Child.') ? 'pay' : 'delegate', arguments: {} }],
  }))
  const events = eventsOf(await ran(model, [delegate]), IDS)
  const [child] = of(events, 'SUBAGENT_STARTED')
  const outcome = of(events, 'RUN_FINISHED')[0]?.outcome
  expect(outcome).toMatchObject({
    type: 'interrupt',
    interrupts: [{ reason: 'tool_call', subagentRunId: child?.subagentRunId }],
  })
  const [finished] = of(events, 'SUBAGENT_FINISHED')
  expect(finished).toMatchObject({ subagentRunId: child?.subagentRunId, outcome: { type: 'suspended' } })
})

test('AG-26 a source that breaks off ends with an error, and open items are closed', async () => {
  const { events: live } = await told(
    harnessOf({ model: new ScriptedModel().says('One two three.') }).stream('Hi.', { runId: 'run_1' }),
  )
  const cut = live.slice(
    0,
    live.findIndex(({ kind }) => kind === 'model_message'),
  )
  async function* broken() {
    yield* cut
    await Promise.resolve()
    throw new Error('The connection was lost.')
  }
  const events = await collect(toAgUi(broken(), IDS))
  expect(events.at(-1)).toMatchObject({ type: 'RUN_ERROR', code: 'interrupted' })
  expect(JSON.stringify(events)).not.toContain('The connection was lost.')
  expect(of(events, 'TEXT_MESSAGE_END')).toHaveLength(of(events, 'TEXT_MESSAGE_START').length)
  expect(eventsOf(cut, IDS).at(-1)).toMatchObject({ type: 'RUN_ERROR', code: 'interrupted' })
})

test('AG-26 over a handler too, a run whose process has left it ends with an error', async () => {
  const { opened, open } = gate()
  const { opened: reached, open: reach } = gate()
  const log = memoryLog()
  const model = new ScriptedModel().replies(async () => {
    reach()
    await opened
    return 'Late.'
  })
  const harness = harnessOf({ model, log })
  const { agUi } = createHandlers({ harness, log })
  const message = { id: 'm1', role: 'user', content: 'Hi.' }
  const input = {
    threadId: 't1',
    runId: 's1',
    state: {},
    messages: [message],
    tools: [],
    context: [],
    forwardedProps: {},
  }
  const request = new Request('http://localhost/agui', { method: 'POST', body: JSON.stringify(input) })
  const response = await agUi(request)
  const text = response.text()
  await reached
  const closing = harness.close({ runs: 'leave', timeoutMs: 1 })
  open()
  await closing
  expect((await text).trimEnd().split('\n\n').at(-1)).toContain('"type":"RUN_ERROR"')
})
