import { stripVTControlCharacters } from 'node:util'

/** A text without the sequences and control characters that a terminal executes; tabs and line ends stay. */
export function withoutTerminalCodes(text: string): string {
  return stripVTControlCharacters(text).replace(/[\0-\b\v\f\x0e-\x1f\x7f-\x9f]/g, '')
}
