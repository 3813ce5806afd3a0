import type { Dialect } from '../ai-sdk/chunk.js'
import { badRequest } from './http.js'
import type { HandlerOptions } from './options.js'

const DIALECTS: readonly Dialect[] = [5, 6, 7]

/** The version of the AI SDK on the page: `?dialect=`, else that of the options, else 7. */
export function dialectOf(options: Pick<HandlerOptions, 'dialect'>, url: URL): Dialect {
  const asked = url.searchParams.get('dialect')
  const dialect = asked === null ? (options.dialect ?? 7) : Number(asked)
  const known = DIALECTS.find((each) => each === dialect)
  if (known === undefined)
    throw badRequest(`Expected \`dialect\` to be 5, 6 or 7, got "${String(asked).slice(0, 80)}".`)
  return known
}
