import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { defineTool, Harness, HarnessError } from 'thinharness'
import type { Answer, DurableEvent, PendingItem, ResumeState, ToolSpec } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { eventsIn, logWith } from '../run/resume/pause-support.js'
import { failureOf } from '../harness/support.js'
import { fold } from '#core/loop/apply.js'
import { readState } from '#run/resume/stored-state.js'

const HERE = fileURLToPath(new URL('.', import.meta.url))

interface Kept {
  readonly name: string
  readonly runId: string
  readonly plays: Readonly<Record<string, readonly unknown[]>>
  readonly end: {
    readonly stopReason: string
    readonly code: string | null
    readonly text: string | null
    readonly pending: readonly { readonly kind: string; readonly callId: string }[]
    readonly usage: object
  } | null
}

/** Stored runs of each version that is read (`rigs/make-corpus.ts`). */
const KEPT = readdirSync(HERE)
  .filter((folder) => /^v\d+$/.test(folder))
  .flatMap((folder) =>
    (JSON.parse(readFileSync(`${HERE}${folder}/index.json`, 'utf8')) as Kept[]).map((kept) => ({
      ...kept,
      title: `${folder}/${kept.name}`,
    })),
  )
type TitledKept = (typeof KEPT)[number]
const WITH_STATE = KEPT.filter(({ name }) => name !== 'interrupted')

function eventsOf({ title }: TitledKept): DurableEvent[] {
  const lines = readFileSync(`${HERE}${title}.jsonl`, 'utf8').trim().split('\n')
  return lines.map((line) => JSON.parse(line) as DurableEvent)
}

function stateOf({ title }: TitledKept): ResumeState {
  return JSON.parse(readFileSync(`${HERE}${title}.json`, 'utf8')) as ResumeState
}

/** The tools of the corpus, as they are now. */
function toolsNow(): ToolSpec[] {
  const parameters = z.object({ n: z.number().default(1) })
  const make = (name: string, beside: Partial<ToolSpec> = {}): ToolSpec => ({
    ...defineTool({
      name,
      description: `The tool ${name}.`,
      parameters,
      handler: (_, context) => (name === 'ask' ? context.ask('Which?', z.string()) : name),
    }),
    ...beside,
  })
  const tools = [
    make('look', { annotations: { readOnly: true } }),
    make('pay', { requiresApproval: true }),
    make('ask'),
  ]
  const delegate = defineTool({
    name: 'delegate',
    description: 'The tool delegate.',
    parameters,
    onUnknownOutcome: 'retry',
    handler: async (_, context) => {
      const runs = ['first', 'second'].map((key) => context.spawn({ prompt: key, key, agentName: key, tools }))
      return (await Promise.all(runs.map(({ result }) => result))).map(({ text }) => text)
    },
  })
  const leave = defineTool({
    name: 'leave',
    description: 'The tool leave.',
    parameters,
    onUnknownOutcome: 'retry',
    handler: (_, { spawn }) => spawn({ prompt: 'first', agentName: 'first', tools, background: true }).runId,
  })
  return [...tools, delegate, leave]
}

function harnessFor({ plays, name }: Kept, log?: Awaited<ReturnType<typeof logWith>>): Harness<unknown> {
  const model = new ScriptedModel().always(({ turn, messages }) => {
    const prompts = messages.flatMap((message) => (message.role === 'user' ? String(message.content).split('\n') : []))
    const line = plays[prompts[0] ?? '']?.[turn]
    return typeof line === 'string' ? line : 'Done.'
  })
  const outputType = z.object({ answer: z.string() })
  const answers = name === 'structured' ? { outputType, outputMode: 'tool' as const } : {}
  return new Harness<unknown>({ builtinTools: [], model, tools: toolsNow(), ...(log && { log }), ...answers })
}

function answerTo({ kind, callId }: PendingItem): Answer {
  return kind === 'approval' ? { callId, approved: true } : { callId, answer: 'red' }
}

describe.each(KEPT)('the log $title', (kept) => {
  test('folds, and yields its stored result or continues', async () => {
    const events = eventsOf(kept)
    const log = await logWith(events)
    const { end, runId } = kept
    const own = events.filter((event) => event.runId === runId)
    const [first] = own
    if (first?.seq === 1 && first.kind === 'run_started' && Array.isArray(first.history))
      expect(fold(own)).toMatchObject({ kind: 'run_state', runId })
    const recovered = await harnessFor(kept, log)
      .recover(runId, { configPolicy: 'any' })
      .catch((error: unknown) => error)
    if (end === null) {
      expect(recovered).toMatchObject({ stopReason: 'input_required' })
      return
    }
    const { stopReason, code, text, pending, usage } = end
    if (recovered instanceof HarnessError) expect(recovered).toMatchObject({ code, run: { stopReason, usage } })
    else expect(recovered).toMatchObject({ stopReason, text, pending, usage })
    expect((await eventsIn(log, runId)).length).toBe(own.length)
  })
})

describe.each(WITH_STATE)('the state of $title', (kept) => {
  test('is read, and can be resumed', async () => {
    const state = stateOf(kept)
    expect(readState(state, 'corpus', null).state).toMatchObject({ kind: 'run_state', runId: kept.runId })
    const harness = harnessFor(kept)
    const pending = kept.end?.pending ?? []
    if (pending.length === 0) {
      const next = kept.name === 'structured' ? 'output_validation_failed' : 'end_turn'
      const run = harness.run('More.', { history: state })
      if (next === 'end_turn') expect((await run).stopReason).toBe(next)
      else expect((await failureOf(run)).code).toBe(next)
      return
    }
    const answers = pending.map((item) => answerTo(item as PendingItem))
    const result = await harness.resume(state, answers, { configPolicy: 'any' })
    expect(result).toMatchObject({ stopReason: 'end_turn', pending: [] })
  })
})

test('logs and states of another version are rejected', async () => {
  const kept = KEPT.find(({ name }) => name === 'plain')
  if (kept === undefined) throw new Error('The corpus has no plain run.')
  const events = eventsOf(kept).map((event) => (event.kind === 'run_started' ? { ...event, version: 1 } : event))
  const log = await logWith(events as DurableEvent[])
  await expect(harnessFor(kept, log).recover(kept.runId)).rejects.toMatchObject({
    code: 'invalid_log',
    message: `The log of run \`${kept.runId}\` has version \`1\`, and this package reads version 3.`,
  })
  const state = { ...stateOf(kept), version: 1 } as unknown as ResumeState
  await expect(harnessFor(kept).run('More.', { history: state })).rejects.toMatchObject({
    code: 'invalid_state',
    message: expect.stringContaining('it has version `1`, and this package reads version 3; run again') as string,
  })
})

/** The keys of a stored document; what a host, a provider or a tool put there is not looked into. */
function keysOf(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(keysOf)
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, each]) => [key, ...(FREE.has(key) ? [] : keysOf(each))])
}

const FREE = new Set(['metadata', 'responses', 'payload', 'answerSchema', 'native', 'notes', 'toolRetries', 'streaks'])
const OF_NAMES = new Set(['labels', 'tools', 'toolRetryBudgets', 'byModel', 'answer', 'editedArguments', 'output'])

test('the pages on formats name every key of the stored states, and every kind of durable event', () => {
  const page = ['docs/log-format.md', 'docs/state-format.md']
    .map((path) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8'))
    .join('')
  const keys = new Set<string>()
  const collect = (value: unknown): void => {
    const named = JSON.parse(
      JSON.stringify(value, (key, each: unknown) => (OF_NAMES.has(key) ? null : each)),
    ) as unknown
    for (const key of keysOf(named)) keys.add(key)
  }
  for (const kept of WITH_STATE) collect(stateOf(kept))
  const kinds = new Set(KEPT.flatMap(eventsOf).map(({ kind }) => kind))
  expect([...keys, ...kinds].filter((word) => !page.includes(`\`${word}\``))).toEqual([])
})
