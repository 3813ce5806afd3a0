import { didYouMean } from './suggest.js'

/** A message about the first unknown key of `given`, or nothing. `what` names the object: `option of \`Harness\``. */
export function unknownKey(given: object, known: readonly string[], what: string): string | undefined {
  const key = Object.keys(given).find((name) => !known.includes(name))
  return key === undefined ? undefined : `Unknown ${what}: \`${key}\`.${didYouMean(key, known)}`
}
