import { oneLine } from './columns.js'

/** Arguments that say what a call looks for or does, most telling first. */
const SUBJECTS = ['query', 'pattern', 'command', 'url', 'task', 'prompt', 'id']

/** A call in words, such as `search "storm|refund" in notes`. */
export function callText(name: string, json: string): string {
  const args = parsed(json)
  const key = SUBJECTS.find((each) => typeof args[each] === 'string')
  const path = typeof args['path'] === 'string' ? args['path'] : undefined
  const subject = key === undefined ? conditions(args['where']) : quoted(key, String(args[key]))
  const words = [name]
  if (typeof args['agent'] === 'string') words.push(args['agent'])
  if (subject !== '') words.push(subject)
  if (path !== undefined && path !== '.') words.push(subject === '' ? path : `in ${path}`)
  return oneLine(words.join(' '))
}

function quoted(key: string, text: string): string {
  return key === 'url' ? text : `"${text}"`
}

/** The conditions of a query, such as `carrier eq Borealis`. */
function conditions(where: unknown): string {
  if (!Array.isArray(where)) return ''
  return where
    .map((each: Record<string, unknown>) => [each['field'], each['op'], each['value']].filter(isWord).join(' '))
    .join(', ')
}

function isWord(value: unknown): boolean {
  return typeof value === 'string' || typeof value === 'number'
}

function parsed(json: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(json)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}

/** A duration for people: `8 ms`, `1.4 s`, `2 min 5 s`. */
export function durationText(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`
  return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`
}
