import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { withinBounds } from '#core/tools/boundary/truncate-output.js'
import type { ToolOutcome } from '#core/tools/tool-spec.js'

const bounded = (outcome: ToolOutcome, maxOutputChars: number): ToolOutcome => withinBounds({ maxOutputChars }, outcome)

const succeeded = (content: string): ToolOutcome & { readonly kind: 'succeeded' } => ({ kind: 'succeeded', content })

describe('bounded', () => {
  test.each<ToolOutcome>([
    { kind: 'succeeded', content: 'x'.repeat(100), metadata: { a: 1 }, parts: [] },
    { kind: 'failed', errorType: 'E', content: 'x', retry: true },
    { kind: 'cancelled', reason: 'x' },
    { kind: 'rejected', reason: null },
  ])('an outcome within its bounds is returned unchanged', (outcome) => {
    expect(bounded(outcome, 100)).toBe(outcome)
  })

  test('a longer text keeps its start and end, around a note about the rest', () => {
    const content = `${'a'.repeat(500)}${'b'.repeat(500)}`
    const outcome = bounded({ ...succeeded(content), metadata: { rows: 1 } }, 101)

    expect(outcome).toEqual({
      kind: 'succeeded',
      content: `${'a'.repeat(31)}\n[… 939 of 1000 characters left out …]\n${'b'.repeat(30)}`,
      metadata: { rows: 1, truncated: true, chars: 1_000 },
    })
  })

  test.each<[ToolOutcome, ToolOutcome]>([
    [
      { kind: 'failed', errorType: 'E', content: 'x'.repeat(50), retry: true },
      { kind: 'failed', errorType: 'E', content: 'xxxxx', retry: true, metadata: { truncated: true, chars: 50 } },
    ],
    [
      { kind: 'cancelled', reason: 'x'.repeat(50) },
      { kind: 'cancelled', reason: 'xxxxx' },
    ],
    [
      { kind: 'rejected', reason: 'x'.repeat(50) },
      { kind: 'rejected', reason: 'xxxxx' },
    ],
  ])('without room for the note, the start is kept', (outcome, expected) => {
    expect(bounded(outcome, 5)).toEqual(expected)
  })

  test('no text exceeds its bound, and no surrogate pair is split', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom('a', '😀', '\n'), maxLength: 400 }),
        fc.integer({ min: 1, max: 300 }),
        (content, most) => {
          const outcome = bounded(succeeded(content), most)

          expect(outcome.kind === 'succeeded' && outcome.content.length).toBeLessThanOrEqual(most)
          expect(outcome.kind === 'succeeded' && outcome.content).not.toMatch(/\p{Surrogate}/u)
        },
      ),
    )
  })

  test('an existing lone surrogate stays', () => {
    expect(bounded(succeeded(`\udc00${'x'.repeat(400)}\ud800`), 60)).toMatchObject({
      content: `\udc00${'x'.repeat(10)}\n[… 380 of 402 characters left out …]\n${'x'.repeat(10)}\ud800`,
    })
  })

  test('fifty million characters are cut at once', () => {
    const content = 'line of text\n'.repeat(4_000_000)
    const startedAt = performance.now()
    const outcome = bounded(succeeded(content), 200_000)

    expect(performance.now() - startedAt).toBeLessThan(30_000)
    expect(outcome.kind === 'succeeded' && outcome.content).toHaveLength(200_000)
    expect(outcome).toMatchObject({ metadata: { truncated: true, chars: 52_000_000 } })
  })

  test('the removed part is not kept in memory', () => {
    setFlagsFromString('--expose_gc')
    const collect = runInNewContext('gc') as () => void
    const used = (): number => {
      collect()
      return process.memoryUsage().heapUsed
    }
    const before = used()
    const outcomes = Array.from({ length: 20 }, (_, index) =>
      bounded(succeeded(`${index} text`.repeat(1_000_000)), 1_000),
    )

    expect(used() - before).toBeLessThan(20_000_000)
    expect(outcomes).toHaveLength(20)
  })

  test('metadata that is too large loses its largest members, never those that the loop reads', () => {
    const metadata = {
      error_type: 'E',
      retry: true,
      tool: 't',
      rows: 'x'.repeat(15_000),
      more: 'y'.repeat(15_000),
      small: [1],
    }
    const outcome = bounded({ kind: 'failed', errorType: 'E', content: 'c', retry: true, metadata }, 100)

    expect(outcome).toEqual({
      kind: 'failed',
      errorType: 'E',
      content: 'c',
      retry: true,
      metadata: {
        error_type: 'E',
        retry: true,
        tool: 't',
        more: 'y'.repeat(15_000),
        small: [1],
        metadata_left_out: ['rows'],
      },
    })
  })

  test('metadata of very many members is bounded too', () => {
    const metadata = Object.fromEntries(Array.from({ length: 100_000 }, (_, index) => [`key_${index}`, index]))
    const outcome = bounded({ ...succeeded('c'), metadata }, 100)

    expect(JSON.stringify(outcome).length).toBeLessThan(25_000)
  })

  test('metadata that is not JSON is converted', () => {
    const outcome = bounded({ ...succeeded('c'), metadata: { n: 5n, ok: 1 } as never }, 100)

    expect(outcome).toEqual({ ...succeeded('c'), metadata: { n: '5', ok: 1 } })
  })
})
