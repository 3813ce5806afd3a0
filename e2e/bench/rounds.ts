// The rounds of a scenario: interleaved, so that a busy minute of the machine affects all contenders and versions of Node.
import { perform } from './children.js'
import type { NodeVersion } from './nodes.js'
import type { Scenario } from './scenarios.js'
import type { Report } from './work.js'

/** By contender. */
export type RoundReports = Readonly<Record<string, Report>>

/** The rounds of a scenario on one version of Node. */
export interface OnNode {
  readonly version: string
  readonly rounds: readonly RoundReports[]
  /** The errors of contenders that did not finish a round, by contender. */
  readonly failures: Readonly<Record<string, string>>
}

export interface Measured {
  readonly scenario: Scenario
  readonly nodes: readonly OnNode[]
}

export interface Rounds {
  readonly baseUrl: string
  readonly rounds: number
  readonly nodes: readonly NodeVersion[]
  /** Contenders that cannot run, with the reason. */
  readonly missing?: ReadonlyMap<string, string>
  /** The folder of CPU profiles. */
  readonly profiles?: string | undefined
}

/** Rounds of a long scenario, at most. */
const LONG_ROUNDS = 2

/** In each round every contender runs once on every Node. One that fails is left out of later rounds of the scenario. */
export async function measured(scenario: Scenario, rounds: Rounds): Promise<Measured> {
  const { contenders, work, isLong = false } = scenario
  const { baseUrl, nodes, profiles, missing = new Map<string, string>() } = rounds
  const missingHere = contenders.flatMap((name): [string, string][] => {
    const reason = missing.get(name)
    return reason === undefined ? [] : [[name, reason]]
  })
  const all = nodes.map(({ version, path }) => {
    return { version, path, rounds: [] as RoundReports[], failures: Object.fromEntries(missingHere) }
  })
  for (let round = 0; round < (isLong ? Math.min(rounds.rounds, LONG_ROUNDS) : rounds.rounds); round++) {
    for (const { path, rounds: done, failures } of all) {
      const reports: Record<string, Report> = {}
      for (const contender of contenders) {
        if (failures[contender] !== undefined) continue
        await perform({ contender, baseUrl, work }, { path, profiles }).then(
          (report) => (reports[contender] = report),
          (error: unknown) => (failures[contender] = words(error)),
        )
      }
      done.push(reports)
    }
  }
  return { scenario, nodes: all }
}

/** The line of the error among the lines of its process. */
export function words(error: unknown): string {
  const lines = String(error instanceof Error ? error.message : error).split('\n')
  return (lines.find((line) => /^\w*Error\b/.test(line)) ?? lines[0] ?? '').slice(0, 300)
}
