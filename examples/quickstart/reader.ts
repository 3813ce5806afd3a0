import { fileTools } from 'thinharness/tools'
import type { SubagentSpec } from 'thinharness/tools'

/**
 * Looks things up in files, so that the one who asks need not read them all. It can change nothing: it has the tools that
 * only read.
 */
export const reader: SubagentSpec = {
  name: 'reader',
  description: 'Looks up facts in notes and other texts of the workspace, and gives them back word for word.',
  instructions: `You look facts up in the files of a workspace, for another agent that reads only your answer. Search before
you read. Answer with the lines that matter, word for word, and the file that each is from; where notes contradict each
other, with those that are in force.`,
  tools: fileTools().filter(({ annotations }) => annotations?.readOnly === true),
  limits: { modelRequests: 8, timeMs: 120_000 },
}
