import type { ToolSpec } from '#core/tools/tool-spec.js'
import { editTool } from './edit/edit.js'
import { globTool } from './glob.js'
import { listTool } from './list.js'
import type { FileToolOptions } from '../workspace/options.js'
import { readTool } from './read.js'
import { searchTool } from '../search/search.js'
import { sharedOptions } from '../workspace/workspace.js'
import { writeTool } from './write.js'

/**
 * The tools for files: `read`, `write`, `edit`, `search`, `list` and `glob`. They cannot leave their root through links, `..`,
 * or folders that are replaced during a call (without `/proc`, as outside Linux, replacing a folder at the right instant
 * leaves a short gap). A file in the root that has a second name elsewhere (a hard link) is inside: it can be read, and the
 * other name keeps its content.
 * @throws HarnessError `invalid_options`; PathValidationError if an allow-list or the output folder leaves the root.
 */
export function fileTools(options: FileToolOptions = {}): readonly ToolSpec[] {
  const shared = sharedOptions(options)
  return [readTool(shared), writeTool(shared), editTool(shared), searchTool(shared), listTool(shared), globTool(shared)]
}
