import { Harness } from 'thinharness'
import { fetchUrl } from 'thinharness/tools'

export const harness = new Harness({
  root: './workspace',
  tools: [fetchUrl({ allowHosts: ['*.example.com'] })],
  provenance: {
    // Notes of what was found on the web may be written; nothing of it becomes a path.
    allow: [{ from: ['web'], tools: ['write'], arguments: ['content'] }],
    otherwise: 'ask',
  },
})
