import { expect, test } from 'vitest'
import { ToldStream } from '#adapters/ui/client/run-transport.js'
import type { StreamChunk } from '#adapters/ui/client/run-transport.js'
import { messageAfter } from './clients.js'
import type { JsonObject } from 'thinharness'
import type { Dialect, UiChunk } from 'thinharness/ui'

const START: readonly UiChunk[] = [{ type: 'start', messageId: 'run_1' }, { type: 'start-step' }]

function part(kind: 'text' | 'reasoning', id: string, delta: string): readonly UiChunk[] {
  return [
    { type: `${kind}-start`, id },
    { type: `${kind}-delta`, id, delta },
    { type: `${kind}-end`, id },
  ]
}

/** The chunks that a page gets of several connections in turn. */
function handedOn(...connections: readonly (readonly UiChunk[])[]): readonly UiChunk[] {
  return handedOnTo(7, connections)
}

function handedOnTo(dialect: Dialect, connections: readonly (readonly UiChunk[])[]): readonly UiChunk[] {
  const told = new ToldStream({ hasReset: dialect === 7 })
  return connections.flatMap((chunks, index) => {
    told.begin()
    const next = chunks.flatMap((chunk) => told.next(chunk))
    const rest = index === connections.length - 1 ? told.end({ type: 'finish' }) : []
    return [...next, ...rest] as unknown as readonly UiChunk[]
  })
}

test('UI-33 a reply that is taken back twice is sent in the order of its last attempt', async () => {
  const [text, reasoning] = [part('text', '2.t0', 'Well.'), part('reasoning', '2.r0', 'Hm.')]
  const chunks: readonly UiChunk[] = [
    ...START,
    ...text,
    { type: 'reset-step' },
    ...reasoning,
    { type: 'reset-step' },
    ...text,
    ...reasoning,
  ]
  expect(await messageAfter(7, handedOn(chunks))).toEqual(await messageAfter(7, [...START, ...text, ...reasoning]))
})

test('UI-33 a part that belongs before those that were sent takes the step back', async () => {
  const [text, reasoning] = [part('text', '2.t0', 'Well.'), part('reasoning', '2.r0', 'Hm.')]
  const whole = [...START, ...text, ...reasoning]
  expect(await messageAfter(7, handedOn([...START, ...reasoning], whole))).toEqual(await messageAfter(7, whole))
})

test.each([5, 6, 7] as const)(
  'UI-33 a text and an input that had ended before they were taken back are not continued (AI SDK %s)',
  async (dialect) => {
    const call = (input: JsonObject): readonly UiChunk[] => [
      { type: 'tool-input-start', toolCallId: 'call_1', toolName: 'look' },
      { type: 'tool-input-delta', toolCallId: 'call_1', inputTextDelta: JSON.stringify(input).slice(0, -1) },
      { type: 'tool-input-available', toolCallId: 'call_1', toolName: 'look', input },
    ]
    const whole = [...START, ...part('text', '2.t0', 'Well. All right.'), ...call({ n: 1, more: true })]
    for (const lost of [part('text', '2.t0', 'Well. '), call({ n: 1 })]) {
      const { parts } = await messageAfter(dialect, handedOnTo(dialect, [[...START, ...lost], whole]))
      expect(parts.findLast(({ type }) => type === 'text')).toMatchObject({ text: 'Well. All right.', state: 'done' })
      expect(parts.filter(({ type }) => type === 'tool-look')).toMatchObject([
        { state: 'input-available', input: { n: 1, more: true } },
      ])
    }
  },
)

test('UI-33 a step that was sent completely is not sent again, even if parts of it were taken back', () => {
  const wrong: readonly UiChunk[] = [...START, ...part('text', '2.t0', 'Wrong.'), { type: 'reset-step' }]
  const next: readonly UiChunk[] = [{ type: 'start-step' }, ...part('text', '4.t0', 'Right.')]
  const again = handedOn([...wrong, ...next], [...wrong, ...next]).slice(wrong.length + next.length)
  expect(again).toEqual([{ type: 'finish' }] satisfies readonly StreamChunk[])
})

test('UI-33 without a way to take a step back, a part that is lost is closed and named', async () => {
  const begun: readonly UiChunk[] = [...START, { type: 'reasoning-start', id: '2.r0' }]
  const chunks = handedOnTo(6, [begun, START])
  expect(chunks.slice(3)).toEqual([
    { type: 'reasoning-end', id: '2.r0' },
    { type: 'data-superseded', data: { parts: ['2.r0'] } },
    { type: 'finish' },
  ])
  expect((await messageAfter(6, chunks)).parts[1]).toMatchObject({ type: 'reasoning', state: 'done' })
})
