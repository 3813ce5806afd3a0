import { grant, policy } from 'thinharness/policy'

const team = policy([
  { decision: 'ask', category: 'execute' },
  { decision: 'deny', command: 'git push *' },
])

/** After a person agreed to `npm test` once and for all. */
export const mine = team.extend([grant({ command: 'npm test *', note: 'Ann agreed.' })])
