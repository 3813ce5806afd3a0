/** The test of a text by a regular expression that a user, a model or a server has given; `spend` gets the work that it takes. */
export type PatternTest = (text: string, spend: (work: number) => void) => boolean

/** Most steps of one test by the engine of JavaScript, which goes back and tries again. */
const MOST_STEPS = 10_000_000
/** Most steps of one test in linear time. */
const MOST_LINEAR_STEPS = 50_000_000
/** A longer text is rare: if this length is safe, no other engine is loaded. */
const USUAL_LENGTH = 1000

/**
 * A test that cannot take long, whatever the expression and the text. It is that of JavaScript as far as its time is known to be
 * short, else that of `re2js`, which runs in linear time. A text that neither can judge is accepted.
 */
export async function patternTest(source: string): Promise<PatternTest> {
  const native = new RegExp(source, 'u')
  const stepsFor = stepsOf(source)
  const linear = isSafePattern(source) ? null : await linearTest(source)
  return (text, spend) => {
    const steps = stepsFor(text.length)
    const isNative = steps <= MOST_STEPS
    spend(isNative ? steps / 100 : text.length / 10)
    return isNative ? native.test(text) : (linear?.(text) ?? true)
  }
}

/** True for an expression that JavaScript tests quickly with any text of a usual length. */
export function isSafePattern(source: string): boolean {
  return stepsOf(source)(USUAL_LENGTH) <= MOST_STEPS
}

async function linearTest(source: string): Promise<((text: string) => boolean) | null> {
  const { RE2JS } = await import('re2js')
  try {
    // What only JavaScript writes in this way.
    const program = RE2JS.compile(
      source
        .replace(/\\u([\da-f]{4})/gi, '\\x{$1}')
        .replace(/\\u\{/g, '\\x{')
        .replaceAll('\\/', '/'),
    )
    const reach = MOST_LINEAR_STEPS / (program.programSize() + 1)
    return (text) => text.length > reach || program.test(text)
  } catch {
    return null
  }
}

const TOKEN =
  /\\(?:k<[^>]*>|[pP]\{[^}]*\}|u\{[^}]*\}|[^])|\[(?:\\[^]|[^\]\\])*\]|\(\?(?:[:=!]|<[=!]|<[^>]*>)|(?:[*+?]|\{\d+(?:,\d*)?\})\??|[^]/gu

/** A group while it is read. */
interface Group {
  /** It can match in several ways. */
  isOpen: boolean
}

/** About how many steps JavaScript takes at most, by the length of the text; without end for what is known to explode. */
function stepsOf(source: string): (length: number) => number {
  const groups: Group[] = [{ isOpen: false }]
  let closed: Group | null = null
  let loops = /^\^(?!.*\|)/s.test(source) ? 0 : 1
  let ways = 1
  for (const [token] of source.matchAll(TOKEN)) {
    const last = closed
    closed = null
    if (/^\\(?:[1-9]|k<)/.test(token)) return () => Infinity
    if (token.startsWith('(')) groups.push({ isOpen: false })
    else if (token === ')') closed = groups.pop() ?? null
    else if (token === '|') ways *= 2
    const repeats = repetitionsOf(token)
    if (repeats !== null) {
      if (last?.isOpen === true && repeats.most > 1) return () => Infinity
      if (repeats.most - repeats.least > MANY) loops += 1
      else ways *= repeats.most - repeats.least + 1
    }
    const isOpen = token === '|' || closed?.isOpen === true || (repeats !== null && repeats.most > repeats.least)
    for (const group of groups.slice(-1)) group.isOpen ||= isOpen
  }
  return (length) => ways * (length + 1) ** loops
}

const MANY = 10

function repetitionsOf(token: string): { readonly least: number; readonly most: number } | null {
  if (/^\?\??$/.test(token)) return { least: 0, most: 1 }
  if (/^[*+]\??$/.test(token)) return { least: 0, most: Infinity }
  const [, least, comma, most] = /^\{(\d+)(,?)(\d*)\}\??$/.exec(token) ?? []
  if (least === undefined) return null
  return { least: Number(least), most: comma === '' ? Number(least) : most === '' ? Infinity : Number(most) }
}
