/** Freezes plain objects and arrays, and everything in them. Objects that are frozen already are not visited again. */
export function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null) freezePlain(value)
  return value
}

function freezePlain(value: object): void {
  if (Object.isFrozen(value)) return
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== Array.prototype && prototype !== null) return
  Object.freeze(value)
  for (const name in value) {
    const member: unknown = value[name as keyof typeof value]
    if (typeof member === 'object' && member !== null) freezePlain(member)
  }
}
