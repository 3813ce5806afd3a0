// From reports to tables: medians over the rounds, and medians of the ratios within each round.

import type { Goal, Measure } from './measures.js'
import type { Scenario } from './scenarios.js'
import type { Report } from './work.js'

/** By contender. */
export type RoundReports = Readonly<Record<string, Report>>

interface Result {
  readonly value: number
  readonly ratio: number
}

/** The reports of a scenario, round by round. */
interface Measured {
  readonly scenario: Scenario
  readonly rounds: readonly RoundReports[]
}

/** A table in Markdown, and the goals that are missed. */
export function tableOf(measured: Measured): { readonly table: string; readonly missed: readonly string[] } {
  const { contenders, measures } = measured.scenario
  const hasGoals = measures.some(({ goals = {} }) => Object.keys(goals).length > 0)
  const rows = [
    ['', ...measures.map(({ title, unit }) => (unit === '' ? title : `${title}, ${unit}`))],
    ...contenders.map((contender) => [
      contender,
      ...measures.map((measure) => cell(measure, resultOf(measure, contender, measured))),
    ]),
    ...(hasGoals ? [['goal', ...measures.map(goalsCell)]] : []),
  ]
  return { table: aligned(rows), missed: missedGoals(measured) }
}

export function resultOf(measure: Measure, contender: string, { scenario, rounds }: Measured): Result {
  const { contenders, work } = scenario
  const values = rounds.map((reports) => {
    const round = (name: string): Report => {
      const report = reports[name]
      if (report === undefined) throw new RangeError(`Expected a report of \`${name}\`.`)
      return report
    }
    const [base = contender] = contenders
    const value = measure.of(round(contender), work, round)
    return { value, ratio: value / measure.of(round(base), work, round) }
  })
  return { value: median(values.map(({ value }) => value)), ratio: median(values.map(({ ratio }) => ratio)) }
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((left, right) => left - right)
  const middle = sorted.length / 2
  const [low = 0, high = low] = [sorted[Math.ceil(middle) - 1], sorted[Math.floor(middle)]]
  return (low + high) / 2
}

function cell({ hasRatio }: Measure, { value, ratio }: Result) {
  return hasRatio === true ? `${short(value)} (${short(ratio)}×)` : short(value)
}

/** Three digits; more only before the point. */
export function short(value: number): string {
  if (Math.abs(value) >= 1000) return Math.round(value).toLocaleString('en-US')
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2
  return value.toFixed(digits)
}

function goalsCell({ goals = {} }: Measure) {
  return Object.values(goals).map(goalText).join('; ')
}

function goalText(goal: Goal): string {
  if ('mostTimes' in goal) return `≤ ${goal.mostTimes}×`
  if ('most' in goal) return `≤ ${goal.most}`
  return `≥ ${short(goal.least)}`
}

function missedGoals(measured: Measured): string[] {
  return measured.scenario.measures.flatMap((measure) =>
    Object.entries(measure.goals ?? {}).flatMap(([contender, goal]) => {
      const result = resultOf(measure, contender, measured)
      if (isMet(goal, result)) return []
      return [`${contender}: ${measure.title} ${cell(measure, result)}, goal ${goalText(goal)}`]
    }),
  )
}

function isMet(goal: Goal, { value, ratio }: Result) {
  if ('mostTimes' in goal) return ratio <= goal.mostTimes
  return 'most' in goal ? value <= goal.most : value >= goal.least
}

export function aligned(rows: readonly (readonly string[])[]): string {
  const [head = []] = rows
  const widths = head.map((_, column) => Math.max(3, ...rows.map((row) => row[column]?.length ?? 0)))
  const line = (row: readonly string[]) => {
    const cells = row.map((text, column) => {
      const width = widths[column] ?? 0
      return column === 0 ? text.padEnd(width) : text.padStart(width)
    })
    return `| ${cells.join(' | ')} |`
  }
  const rule = widths.map((width, column) => (column === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`))
  return [line(head), `| ${rule.join(' | ')} |`, ...rows.slice(1).map(line)].join('\n')
}
