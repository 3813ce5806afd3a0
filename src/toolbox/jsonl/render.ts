import { shownPath } from '../workspace/path-text.js'
import type { ShownFile } from '../search/shelf.js'
import type { JsonlSearchArguments } from './arguments.js'
import { cutAt } from './field-search.js'
import type { Group } from './groups.js'
import type { Plan } from './plan.js'
import type { RankedRow } from './ranked.js'
import type { ScanCounts } from './scan-file.js'

const MAX_SHOWN_CHARS = 500
/** Longest text that is put together; what lies behind it is omitted. */
const MAX_TEXT_CHARS = 32_000_000

/** A result without its summary: how much of it there is, and the blocks that show it. */
export interface Body {
  readonly count: string
  readonly blocks: readonly string[]
}

/** The whole result. */
export function renderResult(
  args: JsonlSearchArguments,
  plan: Plan,
  { counts, body }: { readonly counts: ScanCounts; readonly body: Body },
): string {
  const lines = [
    `query: ${args.query === undefined || args.query === '' ? '(none)' : cutAt(args.query, MAX_SHOWN_CHARS)}`,
    `scope: path=${shownPath(args.path === undefined || args.path === '' ? '.' : args.path)}`,
    ...listed(
      'where',
      plan.query.filters.map(({ shown }) => shown),
    ),
    ...listed(
      'fields',
      plan.fields.map(({ path, maxChars }) => (maxChars === 0 ? path.text : `${path.text} (${maxChars})`)),
    ),
    ...listed(
      'field_searches',
      (args.field_searches ?? []).map(({ field, query }) => `${field} '${cutAt(query, 80)}'`),
    ),
    ...listed(
      'order_by',
      (args.order_by ?? []).map(({ field, direction = 'asc' }) => `${field} ${direction}`),
    ),
    ...listed('count_by', args.count_by === undefined || args.count_by === '' ? [] : [args.count_by]),
    body.count,
    `rows_matched: ${counts.rowsMatched}`,
    ...counted('compare_warnings', counts.compareWarnings, 'row(s) with a value that could not be compared'),
    ...counted('json_parse_errors', counts.parseErrors),
    ...counted('overlong_lines', counts.overlongLines, 'line(s) too long to be read'),
  ]
  return [['summary:', ...lines.map((line) => `  ${line}`)].join('\n'), ...body.blocks].join('\n\n')
}

/** Rows file by file. */
export function filesBody(files: readonly ShownFile[], totalFiles: number): Body {
  const blocks: string[] = []
  let chars = 0
  for (const file of files) {
    const omitted = file.matches - file.lines.length
    const rows = file.lines.map(({ number, text }) => `  ${number}: ${text}`)
    const block = [file.shown, ...rows, ...(omitted > 0 ? [`  ... ${omitted} more row(s)`] : [])].join('\n')
    chars += block.length
    if (blocks.length > 0 && chars > MAX_TEXT_CHARS) break
    blocks.push(block)
  }
  const hidden = totalFiles - blocks.length
  return {
    count: `files: ${totalFiles} total, ${blocks.length} shown`,
    blocks: hidden > 0 ? [...blocks, `note: ${hidden} more file(s) omitted`] : blocks,
  }
}

/** Rows of all files in one list. */
export function rankedBody(rows: readonly RankedRow[], offset: number, total: number): Body {
  const shown = rows.slice(offset)
  const left = total - offset - shown.length
  return {
    count: `rows: ${shown.length} shown, ${Math.min(offset, total)} skipped`,
    blocks: [
      ...(shown.length > 0 ? [shown.map(({ file, line, text }) => `  ${file}:${line}: ${text}`).join('\n')] : []),
      ...(left > 0 ? [`note: ${left} more row(s) omitted`] : []),
    ],
  }
}

/** How many rows there are for each value. */
export function groupsBody(
  groups: readonly Group[],
  { offset, limit, others }: { readonly offset: number; readonly limit: number; readonly others: number },
): Body {
  const shown = groups.slice(offset, offset + limit)
  const left = groups.length - offset - shown.length
  return {
    count: `groups: ${groups.length} total, ${shown.length} shown`,
    blocks: [
      ...(shown.length > 0
        ? [shown.map(({ value, rows }) => `  ${rows}: ${cutAt(value, MAX_SHOWN_CHARS)}`).join('\n')]
        : []),
      ...(left > 0 ? [`note: ${left} more group(s) omitted`] : []),
      ...(others > 0 ? [`note: ${others} row(s) have other values, too many to be told apart`] : []),
    ],
  }
}

function listed(name: string, items: readonly string[]): string[] {
  return items.length === 0
    ? []
    : [`${name}: ${cutAt(items.join(name === 'where' ? '; ' : ', '), MAX_SHOWN_CHARS * 4)}`]
}

function counted(name: string, count: number, what?: string): string[] {
  if (count === 0) return []
  return [what === undefined ? `${name}: ${count}` : `${name}: ${count} ${what}`]
}
