import type { ToolSpec } from '#core/tools/tool-spec.js'
import { fileTool } from '../workspace/file-tool.js'
import type { FileToolOptions } from '../workspace/options.js'
import { SEARCH_PARAMETERS } from './arguments.js'
import type { SearchArguments } from './arguments.js'
import { runSearch } from './run-search.js'

/** `search`: lines of text files by regular expression or plain text. */
export function searchTool(options: FileToolOptions = {}): ToolSpec {
  return fileTool<SearchArguments>(options, {
    name: 'search',
    description: 'Search text files line by line with a regular expression, and get the matches grouped by file.',
    instructions: [
      '`search`: pass the text or the regular expression to search for.',
      '- Scope it with `path`; `file_type` takes the name of a type, never a glob.',
      '- Set `literal` when the text contains special characters of regular expressions.',
    ].join('\n'),
    parameters: SEARCH_PARAMETERS,
    annotations: { readOnly: true, idempotent: true, openWorld: false },
    aliases: { pattern: 'query', regex: 'query' },
    pathFields: ['path'],
    run: runSearch,
  })
}
