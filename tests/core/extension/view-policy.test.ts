import { describe, expect, test } from 'vitest'
import { defineExtension, memoryLog } from 'thinharness'
import type { DurableEvent, Extension, ProposedChange, TranscriptEntry, ViewContext } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { eventsOf, harnessOf, ofKind, tool } from '../../harness/support.js'
import { eventsOfRun } from '../../support/collect.js'

/** Replaces the results of all but the last two turns, whenever two more are there. */
function clearing(seen: ViewContext[] = []): Extension {
  return defineExtension({
    name: 'clearing',
    view: (context) => {
      seen.push(context)
      const turns = context.view.filter(({ role }) => role === 'assistant')
      const kept = turns.at(-2)
      if (kept === undefined || turns.length % 2 !== 0) return null
      const earlier = context.view.slice(0, context.view.indexOf(kept))
      const results = earlier.filter((entry) => entry.role === 'tool' && entry.content !== 'cleared')
      return results.length === 0
        ? null
        : { changes: results.map(({ id }) => ({ from: id, to: id, shown: 'cleared' })) }
    },
  })
}

function scripted(turns: number): ScriptedModel {
  const model = new ScriptedModel()
  for (let index = 0; index < turns; index++) model.calls('step', {})
  return model.says('Done.')
}

const step = () => {
  let count = 0
  return tool('step', () => `result ${(count += 1)}`)
}

function shownIn(entries: readonly TranscriptEntry[]): string[] {
  return entries.map((entry) => {
    if (entry.role === 'assistant') return 'reply'
    const content =
      typeof entry.content === 'string'
        ? entry.content
        : entry.content.map((part) => (part.type === 'text' ? part.text : part.type)).join()
    return /result \d|cleared/.exec(content)?.[0] ?? content
  })
}

describe('a view', () => {
  test('XT-15 originals stay in the transcript; the prefix is stable between changes', async () => {
    const sent: (readonly TranscriptEntry[])[] = []
    const generations: number[] = []
    const model = scripted(6)
    const watching = defineExtension({
      name: 'watching',
      wrapModelCall: (call, next) => {
        sent.push([...call.transcript])
        return next(call)
      },
    })
    const seen: ViewContext[] = []
    const harness = harnessOf({ model, tools: [step()], use: [watching, clearing(seen)] })
    const stream = harness.stream('Go.')
    const events = await eventsOf(stream)
    const result = await stream.result
    expect(shownIn(result.transcript).filter((text) => text.startsWith('result'))).toHaveLength(6)
    const changes = ofKind(events, 'view_changed')
    expect(changes.map(({ policy, changes: [change] }) => [policy, change])).toEqual(
      [
        ['clearing', { from: 'e3', to: 'e3', shown: 'cleared', sources: [] }],
        ['clearing', expect.objectContaining({ from: 'e7' })],
      ].slice(0, changes.length),
    )
    for (const { generation } of seen) generations.push(generation)
    expect(generations).toEqual([...generations].sort((one, other) => one - other))
    for (const [index, entries] of sent.entries()) {
      const before = sent[index - 1]
      if (before !== undefined && generations[index] === generations[index - 1] && !startsChange(events, index))
        expect(entries.slice(0, before.length)).toEqual(before)
    }
    expect(shownIn(sent.at(-1) ?? [])).toContain('cleared')
  })

  function startsChange(events: readonly { readonly kind: string }[], request: number): boolean {
    let count = -1
    for (const { kind } of events) {
      if (kind === 'model_request_started') count += 1
      if (kind === 'view_changed' && count === request) return true
    }
    return false
  }

  test('XT-16 it changes after the request began and before its reply', async () => {
    const events = await eventsOf(harnessOf({ model: scripted(4), tools: [step()], use: [clearing()] }).stream('Go.'))
    const kinds = events.filter(({ durable }) => durable).map(({ kind }) => kind)
    const index = kinds.indexOf('view_changed')
    expect(kinds.slice(index - 1, index + 2)).toEqual(['model_request_started', 'view_changed', 'model_message'])
  })

  test('XT-17 it is the same after a killed run is recovered', async () => {
    const whole = memoryLog()
    const model = scripted(4)
    await harnessOf({ model, tools: [step()], use: [clearing()], log: whole }).run('Go.', { runId: 'run_1' })
    const events = await eventsOfRun(whole, 'run_1')
    const cut = events.findIndex(({ kind }) => kind === 'view_changed') + 1
    const log = memoryLog()
    await log.append({ kind: 'run', id: 'run_1' }, JSON.parse(JSON.stringify(events.slice(0, cut))) as DurableEvent[])
    const sent: string[][] = []
    const rest = new ScriptedModel()
    const replies = events.slice(cut).filter(({ kind }) => kind === 'model_message').length
    for (let index = 1; index < replies; index++) rest.calls('step', {})
    rest.says('Done.')
    const watching = defineExtension({
      name: 'watching',
      wrapModelCall: (call, next) => {
        sent.push(shownIn(call.transcript))
        return next(call)
      },
    })
    await harnessOf({ model: rest, tools: [step()], use: [watching, clearing()], log }).recover('run_1')
    const asked = model.requests.length - sent.length
    expect(sent[0]).toContain('cleared')
    expect(sent[0]?.length).toBe(model.requests[asked]?.transcriptLength)
  })

  const proposing = (change: (context: ViewContext) => readonly ProposedChange[] | null): Extension =>
    defineExtension({
      name: 'proposing',
      view: (context) => {
        const changes = change(context)
        return changes === null ? null : { changes, tokensBefore: 100, tokensAfter: 40 }
      },
    })

  async function run(turns: number, change: Parameters<typeof proposing>[0]) {
    const sent: string[][] = []
    const watching = defineExtension({
      name: 'watching',
      wrapModelCall: (call, next) => {
        sent.push(shownIn(call.transcript))
        return next(call)
      },
    })
    const stream = harnessOf({ model: scripted(turns), tools: [step()], use: [watching, proposing(change)] }).stream(
      'Go.',
    )
    const events = await eventsOf(stream)
    return { sent, events, changed: ofKind(events, 'view_changed'), failed: ofKind(events, 'hook_failed') }
  }

  test('XT-18 it never separates a call from its result: a range is widened to whole steps', async () => {
    const { sent, changed } = await run(3, ({ transcript, generation }) =>
      generation === 0 && transcript.length >= 7 ? [{ from: 'e3', to: 'e4', shown: 'Summary.' }] : null,
    )
    expect(changed[0]).toMatchObject({ changes: [{ from: 'e2', to: 'e5' }], tokensBefore: 100, tokensAfter: 40 })
    expect(sent.at(-1)).toEqual(['Go.', 'Summary.', 'reply', 'result 3'])
  })

  test('XT-19 a later range contains earlier ones whole, and one within an earlier range has no effect', async () => {
    const proposals: (readonly ProposedChange[] | null)[] = [
      null,
      null,
      [{ from: 'e2', to: 'e3', shown: 'First.' }],
      [{ from: 'e3', to: 'e3', shown: 'Inside.' }],
      [{ from: 'e3', to: 'e5', shown: 'Both.' }],
      null,
    ]
    const { sent, changed } = await run(5, () => proposals.shift() ?? null)
    expect(changed.map(({ changes }) => changes.map(({ from, to }) => `${from}-${to}`))).toEqual([
      ['e2-e3'],
      [],
      ['e2-e5'],
    ])
    expect(sent.at(-1)?.slice(0, 4)).toEqual(['Go.', 'Both.', 'reply', 'result 3'])
  })

  test.each<[string, readonly ProposedChange[], string]>([
    ['an unknown entry', [{ from: 'e99', to: 'e99', shown: 'x' }], 'There is no entry `e99` in the transcript.'],
    ['an end before its start', [{ from: 'e3', to: 'e2', shown: 'x' }], 'Expected entry `e3` to come before `e2`.'],
    [
      'ranges that overlap',
      [
        { from: 'e2', to: 'e3', shown: 'x' },
        { from: 'e3', to: 'e3', shown: 'x' },
      ],
      'Two ranges overlap at entry `e3`.',
    ],
    [
      'an empty text',
      [{ from: 'e2', to: 'e3', shown: '' }],
      'Expected `shown` of the range `e2` to `e3` not to be empty.',
    ],
  ])('XT-20 an invalid change is reported, and the view stays as it is (%s)', async (_name, changes, message) => {
    const { changed, failed } = await run(1, ({ transcript }) => (transcript.length > 2 ? changes : null))
    expect(changed).toEqual([])
    expect(failed).toEqual([expect.objectContaining({ hookEvent: 'view', extension: 'proposing', message })])
  })

  test('XT-21 a notice that a view covers is repeated', async () => {
    const model = scripted(3)
    const use = [
      defineExtension({ name: 'place', notices: () => [{ name: 'n', text: 'Berlin.' }] }),
      proposing(({ transcript, generation }) =>
        generation === 0 && transcript.length >= 6 ? [{ from: 'e2', to: 'e4', shown: 'Summary.' }] : null,
      ),
    ]
    const stream = harnessOf({ model, tools: [step()], use }).stream('Go.')
    const events = await eventsOf(stream)
    const withNotices = ofKind(events, 'model_request_started').map(({ hostNotices }) => hostNotices !== undefined)
    expect(withNotices).toEqual([true, false, false, true])
  })
})
