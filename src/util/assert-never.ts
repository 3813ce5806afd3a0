/** The end of an exhaustive switch: a new case breaks the build here, and a foreign value names itself at run time. */
export function assertNever(value: never): never {
  throw new TypeError(`Unexpected value: ${JSON.stringify(value)}`)
}
