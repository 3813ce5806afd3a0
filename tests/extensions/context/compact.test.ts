import { describe, expect, test } from 'vitest'
import { Budget, HarnessError, memoryLog } from 'thinharness'
import type { RunEvent } from 'thinharness'
import { clearResults, compact } from 'thinharness/context'
import { ScriptedModel } from 'thinharness/testing'
import { shownEvent } from '#adapters/ui/native/shown-event.js'
import { eventsOf, harnessOf, ofKind, tool } from '../../harness/support.js'
import { lookingFor, windowedModel } from './windowed-model.js'
import { compactingProvider } from './compacting-provider.js'
import type { Api, Behaviour, CompactingProvider } from './compacting-provider.js'

const limits = { modelRequests: null, toolCalls: null }
const look = tool('look', () => 'star '.repeat(800))
const REQUEST = 'Count the stars, and name the brightest.'
const APIS: readonly Api[] = ['openai', 'anthropic']

async function longRun(api: Api, behaviour: Behaviour = {}, options: Parameters<typeof compact>[0] = {}) {
  const provider = compactingProvider(api, behaviour)
  const harness = harnessOf({
    model: provider.model,
    instructions: 'Be exact.',
    tools: [look],
    use: [compact(options)],
    limits,
  })
  const stream = harness.stream(REQUEST, { runId: 'run_1', deltas: false })
  const events: RunEvent[] = await eventsOf(stream)
  return { provider, events, changes: ofKind(events, 'view_changed'), result: await stream.result }
}

function sent({ turns }: CompactingProvider, index: number): string {
  return JSON.stringify(turns.at(index)?.body)
}

describe("the provider's own compaction", () => {
  test.each(APIS)(
    'XC-41 it replaces all but the recent steps, is sent back as it is, and only the newest: %s',
    async (api) => {
      const { provider, changes, result } = await longRun(api, { calls: 45 })
      expect(result.text).toBe('Done.')
      expect(provider.compactions.length).toBeGreaterThan(2)
      expect(changes).toHaveLength(provider.compactions.length)
      for (const { policy, changes: list, tokensBefore, tokensAfter } of changes) {
        expect(policy).toBe('compact')
        expect(list).toHaveLength(1)
        expect(list[0]).toMatchObject({ from: 'e1', native: { provider: api } })
        expect(tokensAfter).toBeLessThan((tokensBefore ?? 0) / 1.5)
      }
      // No request is longer than the window.
      for (const { body } of provider.turns) expect(JSON.stringify(body).length / 4).toBeLessThan(20_000)
      // The request of the user stays, word for word; recent results too; the originals can be read.
      expect(sent(provider, -1)).toContain(REQUEST)
      expect(sent(provider, -1)).toContain('star star')
      expect(sent(provider, -1)).toMatch(/recall\(.{5,40}run_1\.e1-e\d+/)
    },
  )

  test.each(APIS)('XC-42 its tokens count as those of the run, and the event has them: %s', async (api) => {
    const { provider, changes, result } = await longRun(api)
    const used = changes.reduce((sum, { usage }) => sum + (usage?.inputTokens ?? 0), 0)
    const asked = provider.compactions.reduce((sum, { body }) => sum + Math.round(JSON.stringify(body).length / 4), 0)
    expect(used).toBe(asked)
    const turns = provider.turns.reduce((sum, { body }) => sum + Math.round(JSON.stringify(body).length / 4), 0)
    expect(result.usage.inputTokens).toBe(turns + asked)
    expect(result.usage.modelRequests).toBe(provider.turns.length)
    expect(changes.every(({ cost }) => (cost ?? 0) > 0)).toBe(true)
  })

  test.each(APIS)('XC-43 it is in the log: replay has it, and a later run begins with it: %s', async (api) => {
    const provider = compactingProvider(api, { calls: 20 })
    const log = memoryLog()
    const options = { model: provider.model, tools: [look], use: [compact()], limits, log }
    await harnessOf(options).run(REQUEST, { runId: 'run_1' })
    const last = sent(provider, -1)
    const count = provider.compactions.length
    expect(count).toBeGreaterThan(0)
    await harnessOf(options).run('And now?', { history: { runId: 'run_1' } })
    expect(provider.compactions).toHaveLength(count)
    // The beginning of the request is that of the last one, byte for byte.
    const shared = last.indexOf('sealed') + last.indexOf('Summary') + 100
    expect(sent(provider, -1).slice(0, shared)).toBe(last.slice(0, shared))
    expect(sent(provider, -1)).toContain('And now?')
    const nobody = new ScriptedModel()
    const again = await harnessOf({ ...options, model: nobody }).replay(log.read({ kind: 'run', id: 'run_1' }))
    expect(again.text).toBe('Done.')
  })

  test.each([
    ['openai', 'anthropic', 'Count the stars'],
    ['anthropic', 'openai', 'Summary 1: stars were seen.'],
  ] as const)('XC-44 a model of another provider gets its readable part: %s, then %s', async (api, other, readable) => {
    const first = compactingProvider(api, { calls: 20 })
    const log = memoryLog()
    const options = { tools: [look], use: [compact()], limits, log }
    await harnessOf({ ...options, model: first.model }).run(REQUEST, { runId: 'run_1' })
    expect(first.compactions.length).toBeGreaterThan(0)
    const second = compactingProvider(other, { calls: 0 })
    await harnessOf({ ...options, model: second.model }).run('And now?', { history: { runId: 'run_1' } })
    const request = sent(second, 0)
    expect(request).toContain(readable)
    expect(request).not.toContain('sealed')
    expect(request).not.toContain('signed')
    expect(request).toContain(REQUEST)
  })

  test.each<[string, Behaviour['refusal']]>([
    ['the server has none', { status: 404, message: 'Not found' }],
    ['the model has none', { status: 400, message: 'compaction is not supported' }],
  ])('XC-45 old results are cleared instead if %s', async (_name, refusal) => {
    for (const api of APIS) {
      const { result, changes, provider } = await longRun(api, { ...(refusal && { refusal }), calls: 20 })
      expect(result.text).toBe('Done.')
      expect(changes.length).toBeGreaterThan(0)
      for (const { changes: list } of changes) for (const change of list) expect(change).not.toHaveProperty('native')
      expect(provider.compactions.length).toBe(changes.length)
    }
  })

  test.each(APIS)('XC-45 if a later compaction fails, the earlier one stays: %s', async (api) => {
    const refusal = { status: 400, message: 'compaction_unavailable', after: 1 }
    const { provider, changes } = await longRun(api, { refusal, calls: 45 })
    expect(changes.length).toBeGreaterThan(2)
    expect(changes.filter(({ changes: list }) => list.some(({ native }) => native !== undefined))).toHaveLength(1)
    expect(sent(provider, -1)).toMatch(/sealed 1|signed 1/)
    expect(sent(provider, -1)).toContain(REQUEST)
  })

  test('XC-45 old results are cleared if the API has no compaction', async () => {
    const model = windowedModel({ window: 8_000, reply: lookingFor(12) })
    const events = await eventsOf(harnessOf({ model, tools: [look], use: [compact()], limits }).stream(REQUEST))
    expect(JSON.stringify(ofKind(events, 'view_changed')[0])).toContain('to save space')
  })

  test('XC-46 it is paid from the budget of the run, once', async () => {
    const provider = compactingProvider('anthropic', { calls: 20 })
    const prices = { unknown: { inputPerMillion: 1, outputPerMillion: 1 } }
    const budget = new Budget({ costUsd: 100 })
    const harness = harnessOf({ model: provider.model, tools: [look], use: [compact()], limits, prices })
    const { usage } = await harness.run(REQUEST, { budget })
    expect(provider.compactions.length).toBeGreaterThan(0)
    // Compactions are paid from the budget, once.
    expect(budget.spent).toBeCloseTo(usage.costUsd ?? 0, 6)
  })

  test('XC-47 pinned entries stay word for word, and other policies act on what is left', async () => {
    const { provider } = await longRun('anthropic', {}, { pinned: (entry) => entry.id === 'e3' })
    expect(sent(provider, -1)).toContain('Of it, word for word:')
    expect(sent(provider, -1)).toContain('"from\\":\\"result of look')
    const both = compactingProvider('openai')
    const use = [compact(), clearResults()]
    const result = await harnessOf({ model: both.model, tools: [look], use, limits, instructions: 'x' }).run(REQUEST)
    expect(result.text).toBe('Done.')
  })

  test("XC-48 the caller's own beta features stay", async () => {
    const headers = { 'anthropic-beta': 'context-1m-2025-08-07' }
    const { provider } = await longRun('anthropic', { calls: 20, headers })
    expect(provider.turns[0]?.headers.get('anthropic-beta')).toBe('context-1m-2025-08-07')
    expect(provider.turns.at(-1)?.headers.get('anthropic-beta')).toBe('context-1m-2025-08-07,compact-2026-09-04')
  })

  test('XC-49 readers in a browser do not get the form of the provider', async () => {
    const { events } = await longRun('openai', { calls: 20 })
    const [change] = ofKind(events, 'view_changed')
    expect(JSON.stringify(change)).toContain('sealed')
    expect(JSON.stringify(change && shownEvent(change, { diagnostics: true }))).not.toContain('sealed')
  })

  test('XC-49 options of the wrong form are rejected', () => {
    expect(() => compact({ at: -1 })).toThrow(HarnessError)
    expect(() => compact({ timeoutMs: 0 })).toThrow('timeoutMs')
  })
})
