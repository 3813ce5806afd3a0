/** How many items of a long piece of work are dealt with before the process does something else. */
const TOGETHER = 32

/** The items, with breaks in which the process does whatever else there is to do. */
export async function* inPieces<Item>(
  items: Iterable<Item> | AsyncIterable<Item>,
): AsyncGenerator<Item, void, undefined> {
  let count = 0
  for await (const item of items) {
    count += 1
    if (count % TOGETHER === 0) await nextTurn()
    yield item
  }
}

/** As `inPieces`, with the items of each piece together. */
export async function* pieces<Item>(items: readonly Item[]): AsyncGenerator<readonly Item[], void, undefined> {
  for (let start = 0; start < items.length; start += TOGETHER) {
    if (start > 0) await nextTurn()
    yield items.slice(start, start + TOGETHER)
  }
}

/** Resolves when the process has done what waits. */
function nextTurn(): Promise<void> {
  const soon = 'setImmediate' in globalThis ? setImmediate : setTimeout
  return new Promise((resolve) => void soon(resolve))
}
