/** Longest piece of a text that is one row, in characters, and how much of it the next piece repeats. */
const LONGEST = 2000
const CUT = 1600
const OVERLAP = 160

/** Scripts that are written without spaces. */
const DENSE = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}]+/u
const WORDS = new RegExp(`${DENSE.source}|(?:(?!${DENSE.source})[\\p{L}\\p{N}\\p{M}])+`, 'gu')
const LONGEST_WORD = 64
const PLAIN = /^[\0-\x7f]*$/
const ACCENTS = /(?<=[\p{Script=Latin}\p{Script=Greek}]\p{M}*)\p{M}/gu

/** Words of English that say nothing about the subject of a text, and the parts of contractions such as `don't`. */
const FREQUENT: ReadonlySet<string> = new Set(
  (
    'a about after all also am an and any are as at be because been before being but by can could d did didn do does doesn doing ' +
    'don for from had has have having he her here hers him his how i if in into is isn it its just ll m may me might more most ' +
    'my no nor not of on or our out over re s shall she should so some such t than that the their them then there these they ' +
    'this those to too under up us ve very was wasn we were what when where which while who whom whose why will with would you your'
  ).split(' '),
)

/** The words of a text, in lower case and without accents. Of a script without spaces: single characters if `single`, and pairs of them. */
function wordTokens(text: string, single: boolean): readonly string[] {
  const found = withoutAccents(text.normalize('NFKC').toLowerCase()).match(WORDS) ?? []
  return found.flatMap((word) => {
    if (!DENSE.test(word)) return [word.slice(0, LONGEST_WORD)]
    const characters = Array.from(word)
    const pairs = characters.slice(1).map((character, index) => `${characters[index]}${character}`)
    return single || pairs.length === 0 ? [...characters, ...pairs] : pairs
  })
}

function withoutAccents(text: string): string {
  return PLAIN.test(text) ? text : text.normalize('NFD').replaceAll(ACCENTS, '').normalize('NFC')
}

/** The words of a text for the index, separated by spaces. */
export function indexedWords(text: string): string {
  return wordTokens(text, true).join(' ')
}

/** The words that a query looks for, each once. */
export function queryWords(query: string, most = 32): readonly string[] {
  return [...new Set(wordTokens(query, false))].slice(0, most)
}

/** The words that a search looks for: frequent English words only if there are no others. */
export function searchWords(query: string): readonly string[] {
  const words = queryWords(query)
  const rare = words.filter((word) => !FREQUENT.has(word))
  return rare.length === 0 ? words : rare
}

/** True if the words of `part` are in `text`, one after the other. */
export function containsWords(text: string, part: string): boolean {
  return ` ${wordTokens(text, true).join(' ')} `.includes(` ${wordTokens(part, true).join(' ')} `)
}

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
