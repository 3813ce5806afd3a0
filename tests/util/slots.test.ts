import { describe, expect, test } from 'vitest'
import { sleep } from '#util/timeout.js'
import { Slots } from '#util/queue/slots.js'

const quiet = new AbortController().signal

describe('Slots', () => {
  test('admits a fixed number at once per key, in order, whatever the outcome of the work', async () => {
    const slots = new Slots(2)
    const begun: string[] = []
    const open: (() => void)[] = []
    const work = (name: string) => () => {
      begun.push(name)
      return new Promise<string>((resolve, reject) =>
        open.push(() => (name === 'b' ? reject(new Error(name)) : resolve(name))),
      )
    }
    const all = ['a', 'b', 'c', 'd'].map((name) => slots.within('one', quiet, work(name)).catch(() => 'failed'))
    const other = slots.within('other', quiet, work('e'))
    await new Promise((resolve) => setImmediate(resolve))
    expect(begun).toEqual(['a', 'b', 'e'])
    for (let index = 0; index < 5; index++) {
      open[index]?.()
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect(begun).toEqual(['a', 'b', 'e', 'c', 'd'])
    expect(await Promise.all([...all, other])).toEqual(['a', 'failed', 'c', 'd', 'e'])
  })

  test('an aborted waiter gives up its place; an already aborted one gets none', async () => {
    const slots = new Slots(1)
    const controller = new AbortController()
    let open: () => void = () => undefined
    const first = slots.within('one', quiet, () => new Promise<void>((resolve) => (open = resolve)))
    const second = slots.within('one', controller.signal, () => Promise.reject(new Error('It ran.')))
    const third = slots.within('one', quiet, () => Promise.resolve('third'))
    controller.abort(new Error('Enough.'))
    await expect(second).rejects.toThrow('Enough.')
    await expect(slots.within('two', controller.signal, () => Promise.resolve())).rejects.toThrow('Enough.')
    open()
    expect(await Promise.all([first, third])).toEqual([undefined, 'third'])
  })
})

test('sleep ends after its time, or with the signal', async () => {
  await sleep(1, quiet)
  const controller = new AbortController()
  const long = sleep(60_000, controller.signal)
  controller.abort(new Error('Enough.'))
  await expect(long).rejects.toThrow('Enough.')
  await expect(Promise.resolve().then(() => sleep(1, controller.signal))).rejects.toThrow('Enough.')
})
