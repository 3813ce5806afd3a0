import type { ToolSpec } from '#core/tools/tool-spec.js'
import { fileTool } from '../workspace/file-tool.js'
import type { FileToolOptions } from '../workspace/options.js'
import { sharedOptions } from '../workspace/workspace.js'
import { JSONL_SEARCH_PARAMETERS } from './arguments.js'
import type { JsonlSearchArguments } from './arguments.js'
import { runJsonlSearch } from './run-jsonl-search.js'

/**
 * `jsonl_search`: rows of line-delimited JSON, filtered, projected, ordered or counted. Numbers are those of JavaScript.
 * @throws HarnessError `invalid_options`; PathValidationError when an allow-list or the output folder leaves the root.
 */
export function jsonlSearch(options: FileToolOptions = {}): ToolSpec {
  return fileTool<JsonlSearchArguments>(sharedOptions(options), {
    name: 'jsonl_search',
    description:
      'Find rows in JSONL files by their fields, and show chosen fields, counts, or lines of big text fields.',
    instructions: [
      '`jsonl_search`: use it when you need structured rows or a few of their fields.',
      '- Scope it with `path`; `query` selects lines before they are parsed, `where` filters rows by fields.',
      '- Show few `fields`, each with a limit. For ranges of numbers and dates, set `type`.',
      '- For big text fields use `field_searches`, which show only the matching lines.',
      '- `count_by` counts rows by a value; `order_by` with `limit` shows the first rows of all files.',
    ].join('\n'),
    parameters: JSONL_SEARCH_PARAMETERS,
    annotations: { readOnly: true, idempotent: true, openWorld: false },
    pathFields: ['path'],
    run: runJsonlSearch,
  })
}
