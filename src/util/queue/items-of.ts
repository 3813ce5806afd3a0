/** How the items of someone else's iterable are read. */
export interface Reading<Item> {
  /** Default: everything is an item. */
  readonly isItem?: (value: unknown) => value is Item
  /** What is expected, for the error. */
  readonly expected: string
  /** The error to throw for what the iterable throws, and for anything but items. */
  readonly failed: (thrown: unknown) => Error
}

/** The items of an iterable or an async iterable that a host has written. A reader that stops early ends it. */
export async function* itemsOf<Item>(
  open: () => unknown,
  { isItem, expected, failed }: Reading<Item>,
): AsyncGenerator<Item, void, undefined> {
  try {
    for await (const item of open() as AsyncIterable<unknown>) {
      if (isItem !== undefined && !isItem(item)) throw new TypeError(`expected ${expected}.`)
      yield item as Item
    }
  } catch (thrown) {
    throw failed(thrown)
  }
}

/** For a promise that nobody wanted: its rejection must not end the process. */
export function ignoreRejection(value: unknown): void {
  if (value instanceof Promise) value.catch(() => undefined)
}
