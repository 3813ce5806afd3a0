import type { ToolSpec } from '../../tools/spec.js'
import { editTool } from './edit/index.js'
import { globTool } from './glob.js'
import { listTool } from './list.js'
import type { FileToolOptions } from '../workspace/options.js'
import { readTool } from './read.js'
import { searchTool } from '../search/index.js'
import { sharedOptions } from '../workspace/workspace.js'
import { writeTool } from './write.js'

/**
 * The tools for work on files: `read`, `write`, `edit`, `search`, `list` and `glob`. They cannot leave their root, through
 * links, `..`, or folders that are swapped while they work (where the system has no `/proc`, as outside Linux, swapping at
 * the right instant leaves a short gap). What lies in the root under a second name elsewhere (a hard
 * link) is inside: it can be read, and is never written through.
 * @throws HarnessError `invalid_options`; PathValidationError when an allow-list or the output folder leaves the root.
 */
export function fileTools(options: FileToolOptions = {}): readonly ToolSpec[] {
  const shared = sharedOptions(options)
  return [readTool(shared), writeTool(shared), editTool(shared), searchTool(shared), listTool(shared), globTool(shared)]
}
