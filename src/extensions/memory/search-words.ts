/** Scripts that are written without spaces. */
const DENSE = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}]+/u
/** Symbols that are words, one by one; not those of Markdown and code. */
const SYMBOL = /(?![`|~^=<>])[\p{S}§%&@#]/u
const WORDS = new RegExp(`${DENSE.source}|${SYMBOL.source}|(?:(?!${DENSE.source})[\\p{L}\\p{N}\\p{M}])+`, 'gu')
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

/** The words of a text, in lower case and without accents; a symbol is a word of letters, which an index keeps. Of a script without spaces: single characters if `single`, and pairs of them. */
function wordTokens(text: string, single: boolean): readonly string[] {
  const found = withoutAccents(text.normalize('NFKC').toLowerCase()).replaceAll('ß', 'ss').match(WORDS) ?? []
  return found.flatMap((word) => {
    if (SYMBOL.test(word)) return [`symbol${word.codePointAt(0)}`]
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
