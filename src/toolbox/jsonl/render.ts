import { cutText } from '../../util/characters.js'
import { shownPath } from '../workspace/path-text.js'
import type { JsonlSearchArguments } from './arguments.js'
import type { Body } from './collector.js'
import type { Plan } from './plan.js'
import type { ScanCounts } from './scan-file.js'

const MAX_SHOWN_CHARS = 500

/** The summary and the body. */
export function renderResult(
  args: JsonlSearchArguments,
  plan: Plan,
  { counts, body }: { readonly counts: ScanCounts; readonly body: Body },
): string {
  const { query = '', path = '', field_searches: searches = [], order_by: orders = [], count_by: countBy = '' } = args
  const fields = plan.fields.map(({ path, maxChars }) => (maxChars === 0 ? path.text : `${path.text} (${maxChars})`))
  const lines = [
    `query: ${query === '' ? '(none)' : cutText(query, MAX_SHOWN_CHARS)}`,
    `scope: path=${shownPath(path === '' ? '.' : path)}`,
    ...itemLine('where', plan.query.filters.map(({ shown }) => shown).join('; ')),
    ...itemLine('fields', fields.join(', ')),
    ...itemLine('field_searches', searches.map(({ field, query }) => `${field} '${cutText(query, 80)}'`).join(', ')),
    ...itemLine('order_by', orders.map(({ field, direction = 'asc' }) => `${field} ${direction}`).join(', ')),
    ...itemLine('count_by', countBy),
    body.count,
    `rows_matched: ${counts.rowsMatched}`,
    ...countLine('compare_warnings', counts.compareWarnings, ' row(s) with a value that could not be compared'),
    ...countLine('json_parse_errors', counts.parseErrors),
    ...countLine('overlong_lines', counts.overlongLines, ' line(s) too long to be read'),
  ]
  return [['summary:', ...lines.map((line) => `  ${line}`)].join('\n'), ...body.blocks].join('\n\n')
}

function itemLine(name: string, items: string): string[] {
  return items === '' ? [] : [`${name}: ${cutText(items, MAX_SHOWN_CHARS * 4)}`]
}

function countLine(name: string, count: number, explanation = ''): string[] {
  return count === 0 ? [] : [`${name}: ${count}${explanation}`]
}
