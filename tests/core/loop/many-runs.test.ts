import { describe, expect, test } from 'vitest'
import { HarnessError } from 'thinharness'
import type { Hook, JsonObject } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { eventsOf, failureOf, harnessOf, kinds, output, ticks, tool } from '../../harness/support.js'
import { timeLimit, times } from '../../support/length.js'

function codeOf(error: unknown): string | undefined {
  return error instanceof HarnessError ? error.code : undefined
}

describe('many concurrent runs of one harness', () => {
  test(
    'hundreds of runs keep their own prompt, tools, metadata, limits, events and results',
    async () => {
      const look = tool('look', async ({ n }, { runId, metadata }) => {
        await ticks(1)
        return `${Number(n)} ${runId} ${JSON.stringify(metadata)}`
      })
      const heard = new Map<string, unknown>()
      const model = ScriptedModel.each(({ heard: first }) => {
        const prompt = first.kind === 'start' ? String(first.prompt) : ''
        return new ScriptedModel().calls('look', { n: Number(prompt) }).replies((request) => {
          heard.set(prompt, request.heard)
          return `Done with ${prompt}.`
        })
      })
      const hook: Hook = {
        event: 'user_prompt_submit',
        handler: ({ metadata }) => void ((metadata as Record<string, unknown>)['n'] = 'spoilt'),
      }
      const harness = harnessOf({ model, tools: [look], hooks: [hook] })
      const numbers = Array.from({ length: times(200, 1_000) }, (_, index) => index)
      const seen = await Promise.all(
        numbers.map(async (n) => {
          const stream = harness.stream(String(n), { runId: `run_${n}`, metadata: { n }, deltas: false })
          const events = await eventsOf(stream)
          return { events, result: await stream.result }
        }),
      )
      for (const [n, { events, result }] of seen.entries()) {
        expect(events.every(({ runId }) => runId === `run_${n}`)).toBe(true)
        expect(events.map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
        expect(result).toMatchObject({
          runId: `run_${n}`,
          text: `Done with ${n}.`,
          usage: { modelRequests: 2, toolCalls: 1 },
        })
        expect(heard.get(String(n))).toEqual({
          kind: 'tool_outputs',
          outputs: [output('call_1', `${n} run_${n} {"n":${n}}`)],
        })
      }
      model.assertDone()
    },
    timeLimit(60_000),
  )

  test('some fail, some are cancelled, some reach a limit: each ends in its own way', async () => {
    const model = ScriptedModel.each(({ heard: first }) => {
      const prompt = first.kind === 'start' ? String(first.prompt) : ''
      if (prompt.startsWith('fails')) return new ScriptedModel().fails('Down.')
      if (prompt.startsWith('hangs')) return new ScriptedModel().waits(new Promise(() => undefined)).says('Never.')
      if (prompt.startsWith('limited')) return new ScriptedModel().calls('a')
      return new ScriptedModel().calls('a').says('Done.')
    })
    const harness = harnessOf({ model, tools: [tool('a')] })
    const controller = new AbortController()
    const ways = ['works', 'fails', 'hangs', 'limited']
    const runs = Array.from({ length: 200 }, (_, index) => {
      const way = ways[index % 4] ?? ''
      const limits = way === 'limited' ? { modelRequests: 1 } : {}
      return harness.run(`${way} ${index}`, { limits, ...(way === 'hangs' && { signal: controller.signal }) })
    })
    const codes = Promise.all(runs.map((run) => run.then(({ text }) => text, codeOf)))
    await ticks(50)
    controller.abort()
    expect(await codes).toEqual(
      Array.from({ length: 200 }, (_, index) => ['Done.', 'provider_error', 'cancelled', 'limit_reached'][index % 4]),
    )
  }, 60_000)

  test('many runs on one signal cause no warning and are all cancelled by it', async () => {
    const warnings: string[] = []
    const listen = (warning: Error): void => void warnings.push(warning.message)
    process.on('warning', listen)
    try {
      const controller = new AbortController()
      const model = new ScriptedModel().always(() => new Promise(() => undefined))
      const harness = harnessOf({ model })
      const runs = Array.from({ length: 100 }, () => failureOf(harness.run('Go.', { signal: controller.signal })))
      await ticks(10)
      controller.abort()
      expect((await Promise.all(runs)).every(({ code }) => code === 'cancelled')).toBe(true)
      await ticks(5)
      expect(warnings).toEqual([])
    } finally {
      process.off('warning', listen)
    }
  })

  test('a second run with an id that the log has is rejected, during and after the first', async () => {
    const model = new ScriptedModel().always('Done.')
    const harness = harnessOf({ model })
    const [first, second] = await Promise.allSettled([
      harness.run('Go.', { runId: 'run_same' }),
      harness.run('Go.', { runId: 'run_same' }),
    ])
    expect(first).toMatchObject({ status: 'fulfilled' })
    expect(second).toMatchObject({ status: 'rejected', reason: { code: 'run_exists' } })
    const stream = harness.stream('Go.', { runId: 'run_same' })
    expect(kinds(await eventsOf(stream))).toBe('run_failed')
    expect((await failureOf(stream.result)).message).toBe(
      "There is a run `run_same` already. `ifExists: 'continue'` gives its result.",
    )
  })
})

describe('the data of a run', () => {
  test('HK-12 it does not change if its caller later modifies prompt, metadata, limits or tools', async () => {
    const prompt: { type: 'text'; text: string }[] = [{ type: 'text', text: 'Go.' }]
    const metadata = { list: [1] }
    const limits = { modelRequests: 2 }
    const tools = [tool('a')]
    using model = new ScriptedModel().calls('a').says('Done.')
    const stream = harnessOf({ model }).stream(prompt, { metadata, limits, tools })
    const [part] = prompt
    if (part !== undefined) part.text = 'Changed.'
    prompt.push({ type: 'text', text: 'More.' })
    metadata.list.push(2)
    limits.modelRequests = 0
    tools.push(tool('b'))
    const events = await eventsOf(stream)
    expect(events[0]).toMatchObject({
      prompt: [{ type: 'text', text: 'Go.' }],
      metadata: { list: [1] },
      maxModelRequests: 2,
    })
    expect(events[0]).not.toMatchObject({ prompt: [{}, {}] })
    expect(model.heard[0]).toEqual({ kind: 'start', prompt: expect.stringMatching(/^Go\.$/) as string })
    expect(model.requests[0]?.constants.tools.map(({ name }) => name)).toEqual(['a'])
    const { resumeState } = await stream.result
    expect(resumeState).toMatchObject({ metadata: { list: [1] } })
    expect(JSON.stringify(resumeState)).not.toContain('Changed.')
  })

  test('HK-12 metadata becomes plain JSON, as stored in the log', async () => {
    using model = new ScriptedModel().says('Done.')
    const metadata = { at: new Date(0), left: undefined, n: 1 } as unknown as JsonObject
    const events = await eventsOf(harnessOf({ model }).stream('Go.', { metadata }))
    expect(events[0]).toMatchObject({ metadata: { at: '1970-01-01T00:00:00.000Z', n: 1 } })
  })

  test('HC-13 no data of one run reaches the next', async () => {
    using model = new ScriptedModel().calls('a').says('One.').calls('a').says('Two.')
    const harness = harnessOf({ model, tools: [tool('a')] })
    const first = await harness.run('First.')
    const second = await harness.run('Second.')
    expect(model.requests.map(({ transcriptLength }) => transcriptLength)).toEqual([1, 3, 1, 3])
    expect(JSON.stringify(second.transcript)).not.toContain('First.')
    expect(first.transcript).toHaveLength(4)
    expect(second.usage.modelRequests).toBe(2)
  })
})
