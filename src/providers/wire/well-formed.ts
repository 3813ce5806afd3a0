/** JSON text of a model with the escape `\ufffd` in place of each escape that is half of a surrogate pair. */
export function wellFormedEscapes(text: string): string {
  return text.replace(ESCAPE, (escape) => (HALF_ESCAPE.test(escape) ? '\\ufffd' : escape))
}

/** A pair of escapes that is one character, half of a pair, or any other escape: of `\\\\`, too, both are consumed. */
const ESCAPE = /\\(?:ud[89ab][\da-f]{2}\\ud[c-f][\da-f]{2}|ud[89a-f][\da-f]{2}|[^])/gi
const HALF_ESCAPE = /^\\u.{4}$/
