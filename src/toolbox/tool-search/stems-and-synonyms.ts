/** The words of a text as an index has them: in lower case, names in pieces, without endings and without words that say nothing. */
export function indexedWords(text: string): readonly string[] {
  return piecesOf(text)
    .filter((word) => !EMPTY_WORDS.has(word))
    .map(stemOf)
}

/**
 * The words of a query and how much each counts: 1 for its own, less for words that mean nearly the same, such as `remove` for
 * `delete`, or `pull request` for `PR`.
 */
export function queryWords(query: string): ReadonlyMap<string, number> {
  const own = indexedWords(query)
  const weights = new Map(own.map((word) => [word, 1]))
  own.forEach((word, index) => {
    for (const name of [word, `${word} ${own[index + 1] ?? ''}`])
      for (const other of kindred().get(name) ?? []) if (!weights.has(other)) weights.set(other, OF_KINDRED)
  })
  return weights
}

/** How much a word counts that only means nearly the same. */
const OF_KINDRED = 0.4

/** `createIssue`, `create_issue` and `HTTPServer` in pieces. */
function piecesOf(text: string): readonly string[] {
  const spaced = text.replace(/([\p{Ll}\d])(\p{Lu})/gu, '$1 $2').replace(/(\p{Lu}+)(\p{Lu}\p{Ll})/gu, '$1 $2')
  return spaced.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []
}

/** A word without the endings of English plurals and verbs. Two forms of a word have to become the same, whatever that is. */
function stemOf(word: string): string {
  if (word.length > 4 && word.endsWith('ies')) return `${word.slice(0, -3)}y`
  if (word.length > 4 && /(?:[sxz]|ch|sh)es$/.test(word)) return withoutVerbEnding(word.slice(0, -2))
  const isPlural = word.length > 3 && /[^siu]s$/.test(word)
  return withoutVerbEnding(isPlural || /^[a-z]{2}s$/.test(word) ? word.slice(0, -1) : word)
}

function withoutVerbEnding(word: string): string {
  const ending = ['ing', 'ed', 'er', 'e'].find((each) => word.endsWith(each) && /[aeiouy]/.test(beginning(word, each)))
  if (ending === undefined || word.length - ending.length < 3) return word
  const rest = beginning(word, ending)
  return rest.length > 3 && /([bdfgmnprt])\1$/.test(rest) ? rest.slice(0, -1) : rest
}

function beginning(word: string, ending: string): string {
  return word.slice(0, word.length - ending.length)
}

const EMPTY_WORDS = new Set(
  `a an and are as at be been but by can could did do does for from had has have how i if in into is it its me my not of on or our
  please s should so some such t than that the their them then there these they this those to under up us use used using was we were
  what when where which who whom whose why will with would you your`.split(/\s+/),
)

/**
 * Words that people and authors of tools use for the same, a line each: verbs of most interfaces, and usual short forms. `_` joins the
 * words of a name.
 */
const KINDRED = `
  delete remove erase drop destroy clear
  create add new make insert
  get read show view fetch retrieve open
  list all which
  search find query lookup
  update change edit modify set rename
  send post write publish submit
  move transfer
  close finish complete done end
  run execute start trigger launch
  stop cancel abort end
  upload attach
  copy duplicate clone
  count number many
  latest newest recent last
  person user people member
  web website site page url
  comment reply note
  task todo
  pr pull_request
  repo repository
  db database
  org organization
  doc document
  msg message
  img image picture
  dir directory folder
  env environment
  auth authentication login
  config configuration setting`

let made: ReadonlyMap<string, ReadonlySet<string>> | undefined

/** Of each word of the list above: the others of its lines. */
function kindred(): ReadonlyMap<string, ReadonlySet<string>> {
  made ??= kindredOf(KINDRED.trim().split('\n'))
  return made
}

function kindredOf(lines: readonly string[]): ReadonlyMap<string, ReadonlySet<string>> {
  const found = new Map<string, Set<string>>()
  for (const line of lines) {
    const names = line.trim().split(' ').map(indexedWords)
    for (const name of names) {
      const key = name.join(' ')
      const others = found.get(key) ?? new Set<string>()
      for (const other of names) if (other !== name) for (const word of other) others.add(word)
      found.set(key, others)
    }
  }
  return found
}
