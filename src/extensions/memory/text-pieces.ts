/** Longest piece of a text that is one row, in characters, and how much of it the next piece repeats. */
const LONGEST = 2000
const CUT = 1600
const OVERLAP = 160

/** The pieces of a text that are rows of their own: cut between paragraphs, lines, sentences or words, with an overlap. */
export function splitPieces(text: string): readonly string[] {
  // No database stores what comes after a character 0.
  const whole = text.replaceAll('\0', '').trim().toWellFormed()
  if (whole.length <= LONGEST) return whole === '' ? [] : [whole]
  const found: string[] = []
  for (let start = 0; start < whole.length;) {
    const end = whole.length - start <= LONGEST ? whole.length : start + cutPlace(whole.slice(start, start + CUT))
    found.push(whole.slice(start, end).trim().toWellFormed())
    start = end === whole.length ? end : Math.max(start + 1, end - OVERLAP)
  }
  return found.filter((piece) => piece !== '')
}

function cutPlace(piece: string): number {
  for (const separator of ['\n\n', '\n', '. ', ' ']) {
    const at = piece.lastIndexOf(separator)
    if (at > CUT / 2) return at + separator.length
  }
  return piece.length
}
