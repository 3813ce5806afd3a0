import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { textOf } from 'thinharness'
import type { Extension, TranscriptEntry } from 'thinharness'
import { clearResults, compact, observe, summarise } from 'thinharness/context'
import { ScriptedModel } from 'thinharness/testing'
import { harnessOf, tool } from '../../harness/support.js'
import { lookingFor, windowedModel } from './windowed-model.js'
import type { Windowed } from './windowed-model.js'

const limits = { modelRequests: null, toolCalls: null }

function textIn(view: readonly TranscriptEntry[]): string {
  return view
    .map((entry) => (entry.role === 'assistant' ? textOf(entry.parts) : JSON.stringify(entry.content)))
    .join('\n')
}

/** Each request of a model, as text. */
function requestsOf(model: Windowed): readonly string[] {
  const requests: string[] = []
  let view = model.view
  Object.defineProperty(model, 'view', {
    get: () => view,
    set: (next: typeof view) => {
      view = next
      requests.push(textIn(next))
    },
  })
  return requests
}

/** A writer that always fails. */
function broken(): ScriptedModel {
  return new ScriptedModel()
}

const policies: [string, () => Extension][] = [
  ['clearResults', () => clearResults()],
  ['summarise whose writer fails', () => summarise({ model: broken() })],
  ['observe whose writer fails', () => observe({ model: broken() })],
  ['compact of a provider without it', () => compact()],
]

describe.each(policies)('%s', (_name, policy) => {
  test('what a person said while a run continues is in every later request of it', async () => {
    const wish = 'From now on never touch prod.env.'
    const model = windowedModel({ window: 6_000, reply: lookingFor(150) })
    const requests = requestsOf(model)
    let calls = 0
    const look = tool('look', () => {
      calls += 1
      if (calls === 5) void stream.steer(wish)
      return 'star '.repeat(100)
    })
    const harness = harnessOf({ model, tools: [look], use: [policy()], limits })
    const stream = harness.stream('Count the stars.', { runId: 'run_1', deltas: false })

    await stream.result

    const first = requests.findIndex((request) => request.includes(wish))
    expect(first).toBeGreaterThan(0)
    expect(requests.slice(first).filter((request) => !request.includes(wish))).toEqual([])
    expect(requests.some((request) => request.includes('left out to save space'))).toBe(true)
  })

  test('what a person said in a conversation is in every later request, and an old request is said to be answered', async () => {
    const wish = 'For all that follows: never write to Bob.'
    const model = windowedModel({
      window: 6_000,
      reply: () => [{ type: 'text', text: `All of it is done. ${'And so on. '.repeat(60)}` }],
    })
    const requests = requestsOf(model)
    const harness = harnessOf({ model, use: [policy()], limits })
    let transcript: readonly TranscriptEntry[] = []
    for (let turn = 1; turn <= 60; turn++) {
      const message = turn === 1 ? 'Delete the old invoices.' : turn === 2 ? wish : `Write to customer ${turn}.`
      const result = await harness.run(message, { history: transcript })
      transcript = result.transcript
    }

    expect(requests.slice(1).filter((request) => !request.includes(wish))).toEqual([])
    const last = requests.at(-1) ?? ''
    expect(last).toContain('Delete the old invoices.')
    expect(last).toMatch(/What was asked up to here was answered/)
  })
})

test('after any number of views every word of a person is there, or reachable by a handle that is named', async () => {
  const message = fc.oneof(
    fc.stringMatching(/^[a-z]{3,12}( [a-z]{3,12}){0,8}$/),
    fc.integer({ min: 100, max: 500 }).map((words) => 'pasted '.repeat(words)),
  )
  const life = fc.record({
    messages: fc.array(message, { minLength: 20, maxLength: 60 }),
    window: fc.integer({ min: 6_000, max: 12_000 }),
    reply: fc.integer({ min: 1, max: 100 }),
  })
  await fc.assert(
    fc.asyncProperty(life, async ({ messages, window, reply }) => {
      const model = windowedModel({ window, reply: () => [{ type: 'text', text: 'so '.repeat(reply) }] })
      const harness = harnessOf({ model, use: [clearResults()], limits })
      let transcript: readonly TranscriptEntry[] = []
      for (const each of messages) {
        transcript = (await harness.run(each, { history: transcript })).transcript
        const shown = textIn(model.view)
        const named = new Set(model.view.map(({ id }) => id))
        for (const [, from, to = from] of shown.matchAll(/run_[\w-]+\.e(\d+)(?:-e(\d+))?/g)) {
          for (let place = Number(from); place <= Number(to); place++) named.add(`e${place}`)
        }
        const said = transcript.filter(({ role }) => role === 'user')
        expect(said.filter(({ id }) => !named.has(id))).toEqual([])
        // Short messages stay as they are, as long as they fill no more than a part of the window.
        const short = messages.slice(0, messages.indexOf(each) + 1).filter((text) => text.length < 100)
        const total = short.reduce((sum, text) => sum + text.length / 3 + 10, 0)
        if (total < window / 8 && messages.every((text) => text.length < 100)) {
          for (const text of short) expect(shown).toContain(text)
        }
      }
    }),
    { numRuns: 15 },
  )
})

test('an answer to a question of a tool, and the skill that must be read again, are named in place of the steps', async () => {
  let step = 0
  const model = windowedModel({
    window: 8_000,
    reply: (request) => {
      step = request
      if (request > 80) return [{ type: 'text', text: 'Done.' }]
      const [name, args] = request === 1 ? ['skill_read', { skill_name: 'release' }] : ['look', {}]
      return [{ type: 'tool_call', callId: `call_${request}`, name, arguments: JSON.stringify(args) }]
    },
  })
  const skill = tool('skill_read', () => 'First tag, then publish. '.repeat(20))
  const harness = harnessOf({
    model,
    tools: [skill, tool('look', () => 'star '.repeat(100))],
    use: [clearResults()],
    limits,
  })

  await harness.run('Release it.')

  expect(step).toBeGreaterThan(80)
  expect(textIn(model.view)).toMatch(/Skills read in them: `release`; read one again before you go on by it\./)
})
