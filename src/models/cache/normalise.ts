/**
 * A question in the form in which two of them are the same: without differences of case, white space, typographic quotes, thousands
 * separators and the mark at the end. What stands in double quotes or backticks keeps its case, units such as `mW` and `MW` do, and
 * a text with a block of code is left as it is.
 */
export function normalise(text: string): string {
  if (text.includes('```')) return text
  const plain = text
    .normalize('NFC')
    .replace(/[\u200b\u2060]/g, '')
    .replace(/[‘’‚‛]/g, "'")
    .replace(/[“”„‟«»]/g, '"')
    .replace(/\s+/g, ' ')
    .trim()
  const ended = plain.replace(/(?<!\d\s?)[.?!…。？！\s]+$|[.?…。？\s]+$/u, '')
  return ended
    .split(KEPT)
    .map((piece, index) => (index % 2 === 1 ? piece : lowered(piece)))
    .join('')
}

/** Pieces whose case has a meaning, with the white space and the number before them. */
const KEPT = /("[^"]*"|`[^`]*`)/

const THOUSANDS = /(?<![\d.,])[1-9]\d{0,2}(?:,\d{3})+(?![\d]|,\d)/g

/** Letters that are another unit in the other case: milliwatts and megawatts, bits and bytes. */
const UNIT = /(?<=\d\s?)(?:[kmgt]i?)?[bw]h?\b/gi

function lowered(piece: string): string {
  const units = piece.match(UNIT) ?? []
  let index = 0
  return piece
    .toLowerCase()
    .replace(UNIT, (unit) => units[index++] ?? unit)
    .replace(THOUSANDS, (number) => number.replaceAll(',', ''))
}
