import { describe, expect, test } from 'vitest'
import type { ToolContext } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import type { HeardOutput } from 'thinharness/testing'
import { eventsOf, harnessOf, ofKind, rejects, tool, until } from '../../../harness/support.js'

/** What the model hears of a tool that does this, and that the run goes on. */
async function heardOf(
  handler: (context: ToolContext) => unknown,
  beside: Parameters<typeof tool>[2] = {},
): Promise<HeardOutput> {
  using model = new ScriptedModel().calls('odd').says('Done.')
  const stream = harnessOf({ model, tools: [tool('odd', (_args, context) => handler(context), beside)] }).stream('Go.')
  const events = await eventsOf(stream)
  expect((await stream.result).text).toBe('Done.')
  expect(ofKind(events, 'tool_call_completed')).toHaveLength(1)
  const [, heard] = model.heard
  if (heard?.kind !== 'tool_outputs') throw new Error('Expected the outputs of the call.')
  return heard.outputs[0]!
}

function circular(): object {
  const value: Record<string, unknown> = { n: 1 }
  value['self'] = value
  return value
}

/** Rejects with something that is no error, as a host may. */
describe('a misbehaving tool yields a bounded, clear result, and the run continues', () => {
  test.each<[string, () => unknown, Partial<HeardOutput>]>([
    [
      'throws an error',
      () => Promise.reject(new RangeError('Too far.')),
      { ok: false, content: 'RangeError: Too far.' },
    ],
    ['throws a text', () => rejects('Too far.'), { ok: false, content: 'Error: Too far.' }],
    ['throws nothing', () => rejects(undefined), { ok: false, content: 'Error: unknown error' }],
    [
      'throws something that throws',
      () => {
        throw new Proxy(new Error('x'), {
          get: () => {
            throw new Error('Hands off.')
          },
        })
      },
      { ok: false },
    ],
    ['returns nothing', () => undefined, { ok: true, content: 'The tool ran and returned nothing.' }],
    ['returns null', () => null, { ok: true, content: 'null' }],
    ['returns circular data', circular, { ok: true, content: '{"n":1,"self":"[circular]"}' }],
    ['returns a bigint', () => 12n, { ok: true, content: '"12"' }],
    ['returns a function', () => () => 'x', { ok: true, content: '"[function]"' }],
  ])('when it %s', async (_name, handler, expected) => {
    expect(await heardOf(handler)).toMatchObject(expected)
  })

  test('when it throws a long message with a stack', async () => {
    const { ok, content } = await heardOf(() => Promise.reject(new Error('x'.repeat(100_000))))
    expect(ok).toBe(false)
    expect(content.length).toBeLessThanOrEqual(1_200)
    expect(content).not.toMatch(/at .+\.ts/)
  })

  test('when it returns 50 MB, of text and of data', async () => {
    const text = await heardOf(() => 'x'.repeat(50_000_000))
    expect(text).toMatchObject({
      ok: true,
      content: expect.stringContaining(' of 50000000 characters left out') as string,
    })
    expect(text.content.length).toBeLessThanOrEqual(40_000)
    const data = await heardOf(() => Array.from({ length: 500 }, () => 'y'.repeat(100_000)))
    expect(data.content.length).toBeLessThanOrEqual(40_000)
    expect(data.content).toContain('characters left out')
  })

  test('when it exceeds its time limit, with or without respect for its signal', async () => {
    const content = '`odd` had not ended after 20 ms and was stopped. Its outcome is unknown.'
    const told = { ok: false, content }
    let reason: unknown
    const heeding = ({ signal }: ToolContext): Promise<never> =>
      new Promise((_, reject) =>
        signal.addEventListener('abort', () => {
          reason = signal.reason
          reject(new Error('Stopped.'))
        }),
      )
    expect(await heardOf(heeding, { timeoutMs: 20 })).toMatchObject(told)
    expect(reason).toMatchObject({ message: 'The time for this call is up: 20 ms.' })
    expect(await heardOf(() => new Promise(() => undefined), { timeoutMs: 20 })).toMatchObject(told)
  })

  test('when it ends in time, its timer is cleared', async () => {
    let aborted = false
    const quick = ({ signal }: ToolContext): string => {
      signal.addEventListener('abort', () => (aborted = true))
      return 'quick'
    }
    expect(await heardOf(quick, { timeoutMs: 30 })).toMatchObject({ ok: true, content: 'quick' })
    const start = performance.now()
    await until(() => performance.now() - start > 60)
    expect(aborted).toBe(false)
  })

  test('when it reports progress that is not JSON, which only listeners receive', async () => {
    expect(
      await heardOf((context) => {
        context.progress(circular())
      }),
    ).toMatchObject({ ok: true })
  })
})
