import { Harness } from 'thinharness'
import { bash } from 'thinharness/tools'

export const harness = new Harness({
  root: './project',
  sandbox: 'required',
  tools: [bash({ network: ['registry.npmjs.org', '*.example.com'], readPaths: ['/opt/sdk'] })],
})
