/** `object` without the members of these names. */
export function without<T>(
  object: Readonly<Record<string, T>>,
  ...names: readonly string[]
): Readonly<Record<string, T>> {
  return Object.fromEntries(Object.entries(object).filter(([name]) => !names.includes(name)))
}
