import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { nextFrame, sameMembers } from '#adapters/ui/react/readable-store.js'

beforeEach(() => vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

/** A page whose frames are drawn by hand. */
function page(): { readonly draw: () => void } {
  let frames = new Map<number, () => void>()
  let count = 0
  vi.stubGlobal('requestAnimationFrame', (work: () => void) => {
    frames.set((count += 1), work)
    return count
  })
  vi.stubGlobal('cancelAnimationFrame', (frame: number) => frames.delete(frame))
  return {
    draw() {
      const drawn = frames
      frames = new Map()
      for (const work of drawn.values()) work()
    },
  }
}

test('a page is told in its next frame, once', () => {
  const { draw } = page()
  const work = vi.fn()
  nextFrame(work, undefined)
  expect(work).not.toHaveBeenCalled()
  draw()
  vi.advanceTimersByTime(1000)
  draw()
  expect(work).toHaveBeenCalledTimes(1)
})

test('a hidden page, which has no frames, is told within a quarter of a second', () => {
  const { draw } = page()
  const work = vi.fn()
  nextFrame(work, undefined)
  vi.advanceTimersByTime(249)
  expect(work).not.toHaveBeenCalled()
  vi.advanceTimersByTime(1)
  draw()
  expect(work).toHaveBeenCalledTimes(1)
})

test.each([
  ['a given time counts in a page too', 100, true, 100],
  ['without frames, soon', undefined, false, 0],
])('%s', (_, ms, hasFrames, after) => {
  if (hasFrames) page().draw()
  const work = vi.fn()
  nextFrame(work, ms)
  vi.advanceTimersByTime(Math.max(0, after - 1))
  expect(work).toHaveBeenCalledTimes(after === 0 ? 1 : 0)
  vi.advanceTimersByTime(1)
  expect(work).toHaveBeenCalledTimes(1)
})

test('what is cancelled is not done', () => {
  const { draw } = page()
  const work = vi.fn()
  nextFrame(work, undefined)()
  draw()
  vi.advanceTimersByTime(1000)
  expect(work).not.toHaveBeenCalled()
})

const list = [1, 2]
test.each<[unknown, unknown, boolean]>([
  [1, 1, true],
  [Number.NaN, Number.NaN, true],
  [null, {}, false],
  [undefined, null, false],
  [[1, 2], [1, 2], true],
  [[1, 2], [1, 3], false],
  [[1], [1, 2], false],
  [{ list }, { list }, true],
  [{ list }, { list: [1, 2] }, false],
  [{ a: undefined }, { b: undefined }, false],
  [[], {}, false],
  [new Error('one'), new Error('two'), false],
  [new Set([1]), new Set([2]), false],
])('the members of %j and %j are the same: %s', (left, right, same) => {
  expect(sameMembers(left, right)).toBe(same)
})
