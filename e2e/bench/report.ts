// From reports to tables: medians over the rounds, and medians of the ratios within each round.

import type { Goal, Measure } from './measures.js'
import type { Measured, OnNode } from './rounds.js'
import type { Report } from './work.js'

export interface Result {
  readonly value: number
  readonly ratio: number
}

/**
 * A table in Markdown, with a column for each measure and version of Node, and one sentence for each goal that is missed and each
 * contender that failed.
 */
export function tableOf({ scenario, nodes }: Measured): { readonly table: string; readonly notes: readonly string[] } {
  const { contenders, measures } = scenario
  const columns = measures.flatMap((measure) => nodes.map((node) => ({ measure, node })))
  const resultIn = ({ measure, node }: Column, name: string): Result | undefined =>
    resultOf({ scenario, node }, measure, name)
  const hasGoals = measures.some(({ goals = {} }) => Object.keys(goals).length > 0)
  const rows = [
    ['', ...columns.map(({ measure: { title, unit }, node }) => `${title}, ${unit} (Node ${majorOf(node)})`)],
    ...contenders.map((name) => [name, ...columns.map((column) => cell(column.measure, resultIn(column, name)))]),
    ...(hasGoals
      ? [
          [
            'goal',
            ...columns.map(({ measure, node }) =>
              Object.values(measure.goals ?? {})
                .map((each) => goalText(each, node))
                .join('; '),
            ),
          ],
        ]
      : []),
  ]
  const missed = columns.flatMap((column) =>
    Object.entries(column.measure.goals ?? {}).flatMap(([name, goal]) => {
      const result = resultIn(column, name)
      if (result === undefined || isMet(goal, result, column.node)) return []
      const { measure, node } = column
      return [
        `Missed on Node ${majorOf(node)}: ${name}: ${measure.title} ${cell(measure, result)}, goal ${goalText(goal, node)}.`,
      ]
    }),
  )
  const failed = nodes.flatMap((node) =>
    Object.entries(node.failures).map(([name, error]) => `Failed on Node ${majorOf(node)}: ${name}: ${error}`),
  )
  return { table: aligned(rows), notes: [...missed, ...failed] }
}

interface Column {
  readonly measure: Measure
  readonly node: OnNode
}

function majorOf({ version }: OnNode): string {
  return version.split('.')[0] ?? version
}

/** Undefined if the contender, or one that it is compared with, did not run. */
export function resultOf(
  { scenario: { contenders, work }, node: { rounds } }: Pick<Measured, 'scenario'> & { readonly node: OnNode },
  measure: Measure,
  contender: string,
): Result | undefined {
  const values = rounds.flatMap((reports) => {
    const round = (name: string): Report => reports[name] ?? NO_REPORT
    const value = measure.of(round(contender), work, round)
    return Number.isNaN(value) ? [] : [{ value, ratio: value / measure.of(round(contenders[0] ?? ''), work, round) }]
  })
  if (values.length === 0) return undefined
  return { value: median(values.map(({ value }) => value)), ratio: median(values.map(({ ratio }) => ratio)) }
}

/** All measures of it are NaN. */
const NO_REPORT: Report = {
  ...{ runs: NaN, cpuMs: NaN, wallMs: NaN, processCpuMs: NaN, peakMb: NaN, grownKb: NaN, deltas: NaN, heldKb: NaN },
  ...{ payloadKb: NaN, marks: [NaN, NaN] },
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((left, right) => left - right)
  const middle = sorted.length / 2
  const [low = 0, high = low] = [sorted[Math.ceil(middle) - 1], sorted[Math.floor(middle)]]
  return (low + high) / 2
}

function cell({ hasRatio }: Measure, result: Result | undefined): string {
  if (result === undefined) return '–'
  return hasRatio === true ? `${short(result.value)} (${short(result.ratio)}×)` : short(result.value)
}

/** Three digits; more only before the point. */
export function short(value: number): string {
  if (Math.abs(value) >= 1000) return Math.round(value).toLocaleString('en-US')
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2
  return value.toFixed(digits)
}

function goalText(goal: Goal, node: OnNode): string {
  return `≤ ${mostOf(goal, node)}${'mostTimes' in goal ? '×' : ''}`
}

function mostOf(goal: Goal, node: OnNode): number {
  const most = 'mostTimes' in goal ? goal.mostTimes : goal.most
  return Number(majorOf(node)) >= 24 ? (goal.on24 ?? most) : most
}

/** To the digits of the goal. */
function isMet(goal: Goal, { value, ratio }: Result, node: OnNode): boolean {
  return ('mostTimes' in goal ? ratio : value) <= mostOf(goal, node)
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
