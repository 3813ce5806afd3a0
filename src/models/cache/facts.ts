/**
 * What two questions must have in common before they are compared by their meaning: numbers, dates, units, quoted strings, negations,
 * directions and names, in this order, each in the order of the text. English; of another language numbers, quotes and names only.
 */
export function factsOf(text: string): string {
  const plain = text
    .normalize('NFC')
    .replace(/[‘’‚‛]/g, "'")
    .replace(/[“”„‟«»]/g, '"')
  const quoted = [...plain.matchAll(/"([^"]*)"|`([^`]*)`|(?<!\w)'([^']+)'(?!\w)/g)].map(([whole]) => whole.slice(1, -1))
  const words = plain.match(/n't\b|[\p{L}\p{M}]+(?:'\p{L}+)?|[$€£¥%°]/gu) ?? []
  const numbers = (plain.match(/\d+(?:[.,/:]\d+)*/g) ?? []).map((each) => each.replace(/,(?=\d{3}(?!\d))/g, ''))
  const lower = words.map((each) => each.toLowerCase())
  const of = (set: ReadonlySet<string>): readonly string[] => lower.map(singular).filter((each) => set.has(each))
  const counts = lower.filter((each) => NUMBERS.has(each))
  const negations = lower.filter((each) => NEGATIONS.has(each) || each.endsWith("n't"))
  const names = words.filter((each) => /^\p{Lu}/u.test(each) && !COMMON.has(each.toLowerCase()))
  return JSON.stringify([numbers, counts, of(DATES), of(UNITS), quoted, negations.length, of(DIRECTIONS), names])
}

function singular(word: string): string {
  const base = word.replace(/'s?$/, '')
  return ONE.get(base) ?? (base.length > 3 ? base.replace(/(?<!s)s$/, '') : base)
}

const ONE: ReadonlyMap<string, string> = new Map([
  ['feet', 'foot'],
  ['inches', 'inch'],
  ['pence', 'penny'],
  ['centuries', 'century'],
  ['less', 'less'],
])

function wordsIn(text: string): ReadonlySet<string> {
  return new Set(text.trim().split(/\s+/))
}

const NUMBERS =
  wordsIn(`zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
  eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion once twice thrice half
  quarter third double triple dozen pair both first second last`)

const DATES =
  wordsIn(`monday tuesday wednesday thursday friday saturday sunday january february march april may june july august
  september october november december spring summer autumn fall winter today tomorrow yesterday morning afternoon evening night
  noon midnight weekday weekend`)

const UNITS =
  wordsIn(`second minute hour day week month year decade century mile kilometer kilometre meter metre centimeter
  centimetre millimeter millimetre yard foot inch km cm mm pound ounce gram kilogram kg mg ton tonne lb oz liter litre milliliter ml
  gallon quart pint cup tablespoon teaspoon dollar cent euro pound penny yen percent degree celsius fahrenheit watt volt mph kb mb gb
  acre hectare calorie $ € £ ¥ % °`)

const NEGATIONS = wordsIn('not no never none nobody nothing neither nor without cannot except unless hardly')

const DIRECTIONS =
  wordsIn(`more less fewer most least above below over under before after until since increase decrease rise fall
  gain lose lost win won add subtract plus minus maximum minimum highest lowest largest smallest longer shorter taller faster slower
  older younger bigger smaller earlier later inside outside with into left right up down north south east west buy sell bought sold
  give take gave took open close start end all some any each every only`)

/** Words that begin a sentence, and stand for nobody. */
const COMMON =
  wordsIn(`a an and are as at be but by can could did do does every find for from had has have he her his how i if in is it
  its let may might my of on or our please she should so some that the their them then there these they this those to was we were what
  thank thanks solve answer question problem hello hi kindly when where which while who whom whose why will with would you your calculate compute tell explain give show write each all after
  before during since once suppose assume`)
