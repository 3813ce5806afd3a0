import { describe, expect, test } from 'vitest'
import { memoryLog } from 'thinharness'
import type { Extension } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { collect } from '../../support/collect.js'
import { failureOf, harnessOf, ofKind, tool } from '../../harness/support.js'
import { delegateTool, playing } from '../../run/children/children-support.js'

/** Chooses instructions by a version, which is kept as a label. */
function versioned(versionNow: () => string, seen: object[] = []): Extension {
  return {
    name: 'versioned',
    forRun: async ({ labels, begun, agentName, metadata }) => {
      seen.push({ labels, begun, agentName, metadata })
      const version = await Promise.resolve(labels['prompt.support'] ?? versionNow())
      return { instructions: `You are support, version ${version}.`, labels: { 'prompt.support': version } }
    },
  }
}

const HEAD = 'You are support, version '

describe('instructions and labels of one run', () => {
  test('what `forRun` chose is kept when the run goes on, after a pause and in another process', async () => {
    const log = memoryLog()
    let version = '1'
    const seen: object[] = []
    const make = (model: ScriptedModel): ReturnType<typeof harnessOf> =>
      harnessOf({
        ...{ model, log, instructions: 'Nobody reads this.' },
        tools: [tool('pay', () => 'paid', { requiresApproval: true })],
        use: [versioned(() => version, seen)],
      })
    const first = new ScriptedModel().calls('pay', {})
    const options = { metadata: { user: 7 }, labels: { tenant: 'acme' } }
    const { runId } = await make(first).run('Pay.', options)
    version = '2'
    const second = new ScriptedModel().says('Done.')
    await make(second).resume(runId, [{ callId: 'call_1', approved: true }])
    expect([first, second].map(({ requests }) => requests.at(-1)?.constants.instructions)).toEqual([
      `${HEAD}1.`,
      `${HEAD}1.`,
    ])
    const kept = { tenant: 'acme', 'prompt.support': '1' }
    expect(seen).toEqual([
      { labels: { tenant: 'acme' }, begun: 'fresh', agentName: null, metadata: { user: 7 } },
      { labels: kept, begun: 'resumed', agentName: null, metadata: { user: 7 } },
    ])
    expect((await log.inspect({ kind: 'run', id: runId }))?.labels).toEqual(kept)
    expect((await collect(log.list())).map(({ labels }) => labels)).toEqual([kept])
    const started = ofKind(await collect(log.read({ kind: 'run', id: runId })), 'run_started')
    expect(started.map(({ labels }) => labels)).toEqual([kept, undefined])
  })

  test('the outermost extension wins for instructions, the caller for labels', async () => {
    const model = new ScriptedModel().says('Done.')
    const log = memoryLog()
    const named = (name: string): Extension => ({
      name,
      forRun: () => ({ instructions: `By ${name}.`, labels: { by: name, [name]: 'yes', tenant: name } }),
    })
    const harness = harnessOf({ model, log, use: [named('outer'), named('inner')] })
    const { runId } = await harness.run('Go.', { labels: { tenant: 'acme' } })
    expect(model.requests[0]?.constants.instructions).toBe('By outer.')
    const summary = await log.inspect({ kind: 'run', id: runId })
    expect(summary?.labels).toEqual({ by: 'outer', outer: 'yes', inner: 'yes', tenant: 'acme' })
  })

  test('child runs have neither', async () => {
    const log = memoryLog()
    const model = playing({ go: [['delegate'], 'Done.'], child: ['Seen.'] })
    const delegate = delegateTool('delegate', { child: [] })
    const harness = harnessOf({ model, tools: [delegate], use: [versioned(() => '1')], log })
    await harness.run('go', { labels: { tenant: 'acme' } })
    const instructions = model.requests.map(({ constants }) => constants.instructions)
    expect(instructions.filter((text) => text.startsWith(HEAD))).toHaveLength(2)
    expect(instructions).toHaveLength(3)
    const below = (await collect(log.list())).filter(({ parent }) => parent !== null)
    expect(below.map(({ labels }) => labels)).toEqual([{}])
  })

  test('a replay asks `forRun` in the same way, and a fork keeps the labels beside its own', async () => {
    const log = memoryLog()
    const model = new ScriptedModel().calls('look', {}).says('Done.').says('Again.')
    const harness = harnessOf({ model, log, tools: [tool('look')], use: [versioned(() => '1')] })
    const { runId } = await harness.run('Go.', { labels: { tenant: 'acme' } })
    const events = await collect(log.read({ kind: 'run', id: runId }))
    const later = harnessOf({ model: new ScriptedModel(), tools: [tool('look')], use: [versioned(() => '2')] })
    expect((await later.replay(events)).text).toBe('Done.')
    const fork = await harness.fork(events, { afterTurn: 1 }, { labels: { arm: 'b' } })
    const summary = await log.inspect({ kind: 'run', id: fork.runId })
    expect(summary?.labels).toEqual({ tenant: 'acme', 'prompt.support': '1', arm: 'b' })
  })

  test.each<[string, unknown, string]>([
    ['instructions that are no text', { instructions: 7 }, 'Expected `instructions` of an extension to be a string'],
    ['labels that are no texts', { labels: { a: 1 } }, 'Expected `labels` of an extension to be a record of strings'],
    [
      'too many labels',
      { labels: Object.fromEntries(Array.from({ length: 17 }, (_, index) => [`label${index}`, 'x'])) },
      'Expected at most 16 labels of a run, got 17.',
    ],
  ])('no run begins with %s', async (_, members, message) => {
    const log = memoryLog()
    const odd = { name: 'odd', forRun: () => members } as Extension
    const error = await failureOf(harnessOf({ model: new ScriptedModel().says('Hi.'), log, use: [odd] }).run('Go.'))
    expect(error.code).toBe('invalid_options')
    expect(error.message).toContain(message)
    expect(await collect(log.list())).toEqual([])
  })

  test('an extension itself has no instructions and no labels', async () => {
    const error = await failureOf(
      Promise.resolve().then(() => harnessOf({ use: [{ name: 'odd', instructions: 'Hi.' } as Extension] })),
    )
    expect(error.message).toContain('Unknown member of an extension: `instructions`')
  })
})
