import { isObject } from '../../util/json.js'

export type FrontMatter =
  | { readonly ok: true; readonly fields: Readonly<Record<string, unknown>>; readonly body: string }
  | { readonly ok: false; readonly problem: string }

/** The fields between the `---` lines at the start of a file, and what stands behind them. Unquoted colons are repaired. */
export async function parseFrontMatter(text: string): Promise<FrontMatter> {
  const lines = text.replace(/^\uFEFF/, '').split(/\r\n|\n|\r/)
  const end = lines.findIndex((line, index) => index > 0 && line.trimEnd() === '---')
  if (lines[0]?.trimEnd() !== '---' || end === -1)
    return { ok: false, problem: 'it has no front matter between `---` lines' }
  const block = lines.slice(1, end)
  const fields = (await fieldsOf(block.join('\n'))) ?? (await fieldsOf(block.map(withQuotes).join('\n')))
  if (fields === undefined) return { ok: false, problem: 'its front matter is no YAML with fields' }
  return { ok: true, fields, body: lines.slice(end + 1).join('\n') }
}

async function fieldsOf(block: string): Promise<Readonly<Record<string, unknown>> | undefined> {
  const { parse } = await import('yaml')
  try {
    const value: unknown = parse(block, { schema: 'core', logLevel: 'error', prettyErrors: false, uniqueKeys: false })
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** `description: Use it: now` is no YAML, but common. */
function withQuotes(line: string): string {
  const [, key, value] = /^([A-Za-z][\w-]*):[ \t]+([^\s"'|>[{&*!%@`].*)$/.exec(line) ?? []
  return key === undefined || value === undefined || !value.includes(':')
    ? line
    : `${key}: ${JSON.stringify(value.trim())}`
}
