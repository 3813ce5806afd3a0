import { between, oneOf, randomOf } from './random.js'

/** Tools that a run may call; what each does is in `tools.js`. */
const EFFECTS = ['look', 'put', 'pay', 'wire', 'mail', 'step', 'flaky']
const ASKING = ['approve', 'edited', 'ask', 'wizard']

/** How many runs lie below each other, at most. */
const DEPTH = 2

/**
 * A scripted run as plain data, the same for the same seed: by the name of each agent, what its model says turn by turn.
 * A turn is a list of calls, or the text of an answer, which comes behind all calls; the last one is given as often as
 * somebody still has something to report.
 */
export function scenarioOf(seed) {
  const random = randomOf(seed)
  const agents = {}
  writeAgent(agents, 'top', DEPTH, random)
  // The first answer does not fit and is corrected.
  agents['top'].push('not the answer', JSON.stringify({ answer: `top of ${seed}` }))
  return { seed, agents }
}

function writeAgent(agents, agent, depth, random) {
  const turns = []
  agents[agent] = turns
  const count = between(random, 1, agent === 'top' ? 3 : 2)
  for (let turn = 0; turn < count; turn++) {
    const calls = Array.from({ length: between(random, 1, 4) }, () => callOf(random))
    if (depth > 0 && (random() < 0.5 || (turn === 0 && agent === 'top'))) {
      const children = Array.from({ length: between(random, 1, 2) }, (_, index) => `${agent}_${turn}_${index}`)
      for (const child of children) writeAgent(agents, child, depth - 1, random)
      // Those that are left work in the background, and report.
      const name = random() < 0.4 ? 'leave' : 'delegate'
      calls.splice(between(random, 0, calls.length), 0, { name, arguments: { agents: children } })
    }
    turns.push(calls)
  }
  if (agent !== 'top') turns.push(`${agent} done`)
}

function callOf(random) {
  const name = random() < 0.25 ? oneOf(random, ASKING) : oneOf(random, EFFECTS)
  return { name, arguments: { n: between(random, 1, 999) } }
}
