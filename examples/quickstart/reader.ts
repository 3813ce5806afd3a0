import { fileTools } from 'thinharness/tools'
import type { SubagentSpec } from 'thinharness/tools'

/** Looks up facts in files for its parent, which then need not read them all. It has read-only tools. */
export const reader: SubagentSpec = {
  name: 'reader',
  description: 'Looks up facts in the notes and other text files of the workspace, and quotes them word for word.',
  instructions: `You look up facts in the files of a workspace, for another agent that reads only your answer. Search before
you read. Answer with the relevant lines, word for word, and the file of each line. If notes contradict each other, use the
ones that are in force.`,
  tools: fileTools().filter(({ annotations }) => annotations?.readOnly === true),
  limits: { modelRequests: 8, timeMs: 120_000 },
}
