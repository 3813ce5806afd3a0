import { isObject } from './json.js'

/** How the items of someone else's iterable are read. */
export interface Reading<Item> {
  /** Default: everything is an item. */
  readonly isItem?: (value: unknown) => value is Item
  /** What is expected, for the error. */
  readonly expected: string
  /** The error to throw for what the iterable throws, and for anything but items. */
  readonly failed: (thrown: unknown) => Error
}

/**
 * The items that `open` gives, from an iterable or an async iterable that a host has written: it may throw anything, or
 * be something else. A reader that stops early ends it.
 */
export async function* itemsOf<Item>(
  open: () => unknown,
  reading: Reading<Item>,
): AsyncGenerator<Item, void, undefined> {
  const { failed } = reading
  const items = attempt(() => iteratorOf(open(), reading), failed)
  let isOpen = true
  try {
    for (;;) {
      isOpen = false
      const next = await nextOf(items, reading)
      if (next === null) return
      isOpen = true
      yield next.item
    }
  } finally {
    if (isOpen) await items.return?.()
  }
}

function iteratorOf(items: unknown, { expected }: { readonly expected: string }): AsyncIterator<unknown> {
  const { [Symbol.asyncIterator]: begin, [Symbol.iterator]: list } = (items ?? {}) as Partial<
    AsyncIterable<unknown> & Iterable<unknown>
  >
  const iterator: unknown = begin === undefined ? list?.call(items) : begin.call(items)
  if (isObject(iterator) && typeof iterator['next'] === 'function') return iterator as unknown as AsyncIterator<unknown>
  ignoreRejection(items)
  ignoreRejection(iterator)
  throw new TypeError(`expected ${expected}.`)
}

/** Null at the end. */
async function nextOf<Item>(
  items: AsyncIterator<unknown>,
  { isItem, expected, failed }: Reading<Item>,
): Promise<{ readonly item: Item } | null> {
  try {
    const next: unknown = await items.next()
    if (!isObject(next)) throw new TypeError(`expected ${expected}.`)
    if (next['done'] === true) return null
    const item: unknown = next['value']
    if (isItem === undefined || isItem(item)) return { item: item as Item }
    throw new TypeError(`expected ${expected}.`)
  } catch (thrown) {
    throw failed(thrown)
  }
}

/** For a promise that nobody wanted: its rejection must not end the process. */
export function ignoreRejection(value: unknown): void {
  if (value instanceof Promise) value.catch(() => undefined)
}

function attempt<T>(work: () => T, failed: (thrown: unknown) => Error): T {
  try {
    return work()
  } catch (thrown) {
    throw failed(thrown)
  }
}
