import { isObject, parseJson } from '#util/json.js'

/** The texts of an event, as a page shows them: JSON in a text is looked into. Names of members are no texts. */
export function* textsIn(value: unknown, path: string): Generator<readonly [path: string, text: string]> {
  if (typeof value === 'number') yield [path, String(value)]
  else if (typeof value === 'string') {
    const parsed = JSON_TEXT.test(path) && value.startsWith('{') ? parseJson(value) : null
    if (parsed?.ok === true) yield* textsIn(parsed.value, path)
    else yield [path, value]
  } else if (Array.isArray(value))
    for (const [index, item] of value.entries()) yield* textsIn(item, `${path}[${index}]`)
  else if (isObject(value))
    for (const [name, member] of Object.entries(value))
      if (!(path === '' && OF_EVERY_EVENT.has(name))) yield* textsIn(member, path === '' ? name : `${path}.${name}`)
}

/** Members that hold JSON as a text. */
const JSON_TEXT = /(?:^|\.)(?:output|arguments|content)$/
/** The same in all events of a log: a hit there says nothing. */
const OF_EVERY_EVENT: ReadonlySet<string> = new Set([
  'runId',
  'seq',
  'at',
  'durable',
  'parentRunId',
  'agentName',
  'parentToolCallId',
  'kind',
])

/** Finds what may be the text in JSON, and in JSON that is a text in JSON. */
export function linePattern(text: string): RegExp {
  const once = JSON.stringify(text).slice(1, -1)
  const twice = JSON.stringify(once).slice(1, -1)
  return new RegExp([...new Set([once, twice, text])].map(escapedPattern).join('|'), 'gi')
}

export function escapedPattern(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&')
}
