import { Harness } from 'thinharness'
import { fetchUrl } from 'thinharness/tools'

export const harness = new Harness({
  root: './workspace',
  tools: [fetchUrl({ allowHosts: ['*.example.com'] })],
  provenance: {
    // Web content may be written to files, but never used as a path.
    allow: [{ from: ['web'], tools: ['write'], arguments: ['content'] }],
    otherwise: 'ask',
  },
})
