import { isObject } from '#util/json.js'

/**
 * The change that a call of `edit` or `write` would make, as the lines of a diff; null for any other call, and for arguments of
 * another form. Of the files it knows only what the call says: lines around a change are those that the call repeats.
 *
 * @example
 * diffOf('edit', '{"edits":[{"path":"a.js","old_string":"let a\nlet b","new_string":"let a\nlet c"}]}')
 * // --- a.js
 * //   let a
 * // - let b
 * // + let c
 */
export function diffOf(toolName: string, argumentsText: string): string | null {
  const args = parsed(argumentsText)
  if (toolName === 'write') return writeText(args)
  const { edits } = args
  if (toolName !== 'edit' || !Array.isArray(edits)) return null
  const parts = edits.map(editText)
  return parts.includes(null) ? null : parts.join('\n')
}

function editText(edit: unknown): string | null {
  if (!isObject(edit)) return null
  const { path, old_string: before, new_string: after, replace_all: all } = edit
  if (typeof path !== 'string' || typeof before !== 'string' || typeof after !== 'string') return null
  const [olds, news] = [before.split('\n'), after.split('\n')]
  const most = Math.min(olds.length, news.length)
  let head = 0
  while (head < most && olds[head] === news[head]) head++
  let tail = 0
  while (tail < most - head && olds.at(-1 - tail) === news.at(-1 - tail)) tail++
  return [
    `--- ${path}${all === true ? ', every occurrence' : ''}`,
    ...olds.slice(0, head).map((line) => `  ${line}`),
    ...olds.slice(head, olds.length - tail).map((line) => `- ${line}`),
    ...news.slice(head, news.length - tail).map((line) => `+ ${line}`),
    ...olds.slice(olds.length - tail).map((line) => `  ${line}`),
  ].join('\n')
}

function writeText({ path, content, append }: Readonly<Record<string, unknown>>): string | null {
  if (typeof path !== 'string' || typeof content !== 'string') return null
  const lines = content.replace(/\n$/, '').split('\n')
  return [
    `--- ${path}, ${append === true ? 'at its end' : 'the whole file'}`,
    ...lines.map((each) => `+ ${each}`),
  ].join('\n')
}

function parsed(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : {}
  } catch {
    return {}
  }
}
