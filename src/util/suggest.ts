/** The known name that is nearest to `given`, if one is near enough for a misspelling. */
export function nearestName(given: string, known: Iterable<string>): string | undefined {
  const wanted = given.toLowerCase()
  let best: string | undefined
  let bestDistance = Math.max(2, Math.floor(wanted.length / 3)) + 1
  for (const name of known) {
    const distance = editDistance(wanted, name.toLowerCase())
    if (distance < bestDistance) [best, bestDistance] = [name, distance]
  }
  return best
}

/** ` Did you mean `x`?`, or an empty string: the end of a message about an unknown name. */
export function didYouMean(given: string, known: Iterable<string>): string {
  const name = nearestName(given, known)
  return name === undefined ? '' : ` Did you mean \`${name}\`?`
}

/** At most so many known names: those that share most words with `given` come first, if there are more. */
export function namesAlike(given: string, known: readonly string[], most: number): readonly string[] {
  if (known.length <= most) return known
  const wanted = new Set(wordsOfName(given))
  const shared = (name: string): number => wordsOfName(name).filter((word) => wanted.has(word)).length
  return known
    .map((name) => ({ name, score: shared(name) }))
    .sort((one, other) => other.score - one.score)
    .slice(0, most)
    .map(({ name }) => name)
}

function wordsOfName(name: string): readonly string[] {
  return name
    .replace(/([a-z\d])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z\d]+/)
}

/** A message about the first unknown key of `given`, or nothing. `what` names the object: `option of \`Harness\``. */
export function unknownKey(given: object, known: readonly string[], what: string): string | undefined {
  const key = Object.keys(given).find((name) => !known.includes(name))
  return key === undefined ? undefined : `Unknown ${what}: \`${key}\`.${didYouMean(key, known)}`
}

function editDistance(left: string, right: string): number {
  let row = Array.from({ length: right.length + 1 }, (_, index) => index)
  for (let i = 1; i <= left.length; i++) {
    const next = [i]
    for (let j = 1; j <= right.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (left[i - 1] === right[j - 1] ? 0 : 1)
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[right.length] ?? 0
}
