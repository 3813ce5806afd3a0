import { isObject } from './json.js'

/** Path of the first difference between two JSON values, such as `.messages[3].text`; `undefined` if they are equal. */
export function firstDifference(left: unknown, right: unknown): string | undefined {
  if (Object.is(left, right)) return undefined
  if (left instanceof URL && right instanceof URL) return left.href === right.href ? undefined : ''
  if (Array.isArray(left) && Array.isArray(right)) {
    return differenceAmong(
      Array.from({ length: Math.max(left.length, right.length) }, (_, index) => [
        `[${index}]`,
        left[index],
        right[index],
      ]),
    )
  }
  if (isObject(left) && isObject(right)) {
    const keys = new Set([...Object.keys(left), ...Object.keys(right)])
    return differenceAmong([...keys].map((key) => [`.${key}`, left[key], right[key]]))
  }
  return ''
}

function differenceAmong(members: readonly (readonly [string, unknown, unknown])[]): string | undefined {
  for (const [step, left, right] of members) {
    const rest = firstDifference(left, right)
    if (rest !== undefined) return step + rest
  }
  return undefined
}
