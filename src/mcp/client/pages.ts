import { isObject } from '../../util/json.js'
import type { JsonObject } from '../../util/json.js'
import type { McpConnection, RequestOptions } from './connection.js'

/** A list that has more than this is refused: its server would go on for ever. */
const MOST_PAGES = 500
const MOST_ITEMS = 10_000

/** The items of a list request, from all its pages. */
export async function allPages(
  { request }: Pick<McpConnection, 'request'>,
  method: string,
  member: string,
  options: RequestOptions,
): Promise<JsonObject[]> {
  const items: JsonObject[] = []
  let cursor: string | undefined
  for (let page = 0; page < MOST_PAGES; page++) {
    const result = await request(method, cursor === undefined ? {} : { cursor }, options)
    if (!isObject(result) || !Array.isArray(result[member])) {
      throw new Error(`The answer to \`${method}\` has no list \`${member}\`.`)
    }
    for (const item of result[member]) if (isObject(item)) items.push(item as JsonObject)
    const { nextCursor } = result
    if (typeof nextCursor !== 'string') return items
    if (nextCursor === cursor || items.length > MOST_ITEMS) break
    cursor = nextCursor
  }
  throw new Error(`The list of \`${method}\` does not end.`)
}
