import type { LifeCounts } from './life.js'

/** The totals of a number of lives. */
export type Totals = LifeCounts & {
  readonly lives: number
  /** Lives that were lived twice, to compare. */
  readonly replayed: number
  readonly problems: number
}

export const NOTHING: Totals = { lives: 0, messages: 0, runs: 0, calls: 0, deaths: 0, replayed: 0, problems: 0 }

export function added(left: Totals, right: Totals): Totals {
  const names = Object.keys(left) as (keyof Totals)[]
  return Object.fromEntries(names.map((name) => [name, left[name] + right[name]])) as unknown as Totals
}

export function shown({ lives, messages, runs, calls, deaths, replayed, problems }: Totals): string {
  return `${lives} lives, ${messages} messages, ${runs} runs, ${calls} calls, ${deaths} deaths, ${replayed} replayed, ${problems} problems`
}
