import type { ToolSpec } from '../../tools/spec.js'
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
      '`search`: pass the text or the regular expression that you look for.',
      '- Scope it with `path`; use `file_type` for the name of a type only, never for a glob.',
      '- Set `literal` when the text has characters with a meaning in regular expressions.',
    ].join('\n'),
    parameters: SEARCH_PARAMETERS,
    annotations: { readOnly: true, idempotent: true, openWorld: false },
    aliases: { pattern: 'query', regex: 'query' },
    pathFields: ['path'],
    run: runSearch,
  })
}
