import { between, oneOf, randomOf } from './random.js'
import type { Random } from './random.js'

export interface ScenarioCall {
  readonly name: string
  readonly arguments: { readonly n: number } | { readonly agents: readonly string[] }
}

/** A turn of a model: calls, or the text of an answer. */
export type ScenarioTurn = string | readonly ScenarioCall[]

/** The turns of each agent, by its name. */
export type Agents = Readonly<Record<string, readonly ScenarioTurn[]>>

/** Tools that a run may call; their effects are in `tools.ts`. */
const EFFECTS = ['look', 'put', 'pay', 'wire', 'mail', 'step', 'flaky'] as const
const ASKING = ['approve', 'edited', 'ask', 'wizard'] as const

/** The most levels of runs below the run at the top. */
const DEPTH = 2

/**
 * A scripted run as plain data, the same for the same seed. Answers come after all calls; the last answer is repeated as
 * often as a child run still has something to report.
 */
export function scenarioOf(seed: number): Agents {
  const random = randomOf(seed)
  const agents: Record<string, readonly ScenarioTurn[]> = {}
  addAgent(agents, { agent: 'top', depth: DEPTH }, random)
  // The first answer does not fit the schema and is corrected.
  return { ...agents, top: [...(agents['top'] ?? []), 'not the answer', JSON.stringify({ answer: `top of ${seed}` })] }
}

function addAgent(
  agents: Record<string, readonly ScenarioTurn[]>,
  { agent, depth }: { readonly agent: string; readonly depth: number },
  random: Random,
): void {
  const turns: ScenarioTurn[] = []
  agents[agent] = turns
  const count = between(random, 1, agent === 'top' ? 3 : 2)
  for (let turn = 0; turn < count; turn++) {
    const calls = Array.from({ length: between(random, 1, 4) }, () => callOf(random))
    if (depth > 0 && (random() < 0.5 || (turn === 0 && agent === 'top'))) {
      const children = Array.from({ length: between(random, 1, 2) }, (_, index) => `${agent}_${turn}_${index}`)
      for (const child of children) addAgent(agents, { agent: child, depth: depth - 1 }, random)
      // `leave` starts them in the background: they report later.
      const name = random() < 0.4 ? 'leave' : 'delegate'
      calls.splice(between(random, 0, calls.length), 0, { name, arguments: { agents: children } })
    }
    turns.push(calls)
  }
  if (agent !== 'top') turns.push(`${agent} done`)
}

function callOf(random: Random): ScenarioCall {
  const name = random() < 0.25 ? oneOf(random, ASKING) : oneOf(random, EFFECTS)
  return { name, arguments: { n: between(random, 1, 999) } }
}
