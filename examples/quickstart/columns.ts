import { stripVTControlCharacters } from 'node:util'

const characters = new Intl.Segmenter(undefined, { granularity: 'grapheme' })
/** Characters of East Asian scripts and emoji take two columns. */
const WIDE =
  /^[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{1f300}-\u{1f64f}\u{1f900}-\u{1f9ff}\u{20000}-\u{3fffd}]|^\p{Emoji_Presentation}|\ufe0f/u
const ESCAPE = /\u001b\[[\d;]*m/y

/** A text as one line that a terminal shows unchanged: without escapes, line ends and control characters. */
export function oneLine(text: string): string {
  return stripVTControlCharacters(text)
    .replace(/\s+/g, ' ')
    .replace(/\p{Cc}/gu, '')
    .trim()
}

/** The columns that a text takes in a terminal; styles take none. */
export function columnsOf(text: string): number {
  return piecesOf(text).reduce((sum, { columns }) => sum + columns, 0)
}

/** The beginning of a line that fits, with `…` if something is left out. Styles stay complete. */
export function cut(line: string, columns: number): string {
  if (columnsOf(line) <= columns) return line
  let [left, isOver, kept] = [columns - 1, false, '']
  for (const piece of piecesOf(line)) {
    isOver ||= piece.columns > left
    left -= piece.columns
    // What follows may end a style.
    if (!isOver || piece.columns === 0) kept += piece.text
    else if (!kept.includes('…')) kept += '…'
  }
  return kept
}

/** Lines that fit, broken between words, or within one that is longer than a line. Further lines begin with `indent`. */
export function wrapped(text: string, columns: number, indent = ''): string {
  return text
    .split('\n')
    .flatMap((line) => (columnsOf(line) <= columns ? [line] : broken(line, columns, indent)))
    .join('\n')
}

function broken(line: string, columns: number, indent: string): string[] {
  const lines = ['']
  const room = Math.max(1, columns - indent.length)
  for (const word of line.split(/(?<= )/)) {
    const last = lines.at(-1) ?? ''
    if (columnsOf(last + word.trimEnd()) <= columns) lines[lines.length - 1] = last + word
    else for (const part of partsOf(word, room)) lines.push(indent + part)
  }
  return lines.map((each) => each.trimEnd()).filter((each) => each !== '')
}

function partsOf(word: string, columns: number): string[] {
  const parts = ['']
  for (const { text } of piecesOf(word)) {
    const last = parts.at(-1) ?? ''
    if (columnsOf(last + text) > columns && text !== ' ') parts.push(text)
    else parts[parts.length - 1] = last + text
  }
  return parts
}

interface Piece {
  readonly text: string
  readonly columns: number
}

/** Characters as people see them, and styles. */
function piecesOf(text: string): Piece[] {
  const pieces: Piece[] = []
  for (let at = 0; at < text.length;) {
    ESCAPE.lastIndex = at
    const style = ESCAPE.exec(text)?.[0]
    const next = text.indexOf('\u001b', at + 1)
    const plain = style ?? text.slice(at, next === -1 ? undefined : next)
    if (style !== undefined) pieces.push({ text: style, columns: 0 })
    else for (const { segment } of characters.segment(plain)) pieces.push({ text: segment, columns: widthOf(segment) })
    at += plain.length
  }
  return pieces
}

function widthOf(character: string): number {
  if (/^[\p{Cc}\p{Mn}\p{Me}\u200b-\u200f]/u.test(character)) return 0
  return WIDE.test(character) ? 2 : 1
}
