// One table: a row for each measure, a column for each contender.
import { aligned, resultOf, short } from '../report.js'
import { COLUMNS, LOOPS, OURS } from './scenarios.js'
import type { Measure } from '../measures.js'
import type { RoundReports } from '../report.js'
import type { Scenario } from '../scenarios.js'

/** The reports of a scenario, and the errors of those that did not finish a round. */
export interface Compared {
  readonly scenario: Scenario
  readonly rounds: readonly RoundReports[]
  /** By contender. */
  readonly failures: Readonly<Record<string, string>>
}

/** A measured row: medians by the title of the column. */
interface Row {
  readonly title: string
  readonly unit: string
  readonly cells: ReadonlyMap<string, Cell>
}

interface Cell {
  readonly value: number
  /** To the first column, the median of those within each round. */
  readonly ratio: number
}

export interface Comparison {
  readonly table: string
  /** One sentence for each row in which a library is ahead of ours. */
  readonly behind: readonly string[]
  readonly rows: number
}

export function comparisonOf(all: readonly Compared[]): Comparison {
  const rows = all.flatMap((compared) => compared.scenario.measures.map((measure) => rowOf(compared, measure)))
  const head = ['', ...COLUMNS.map(({ title }) => title)]
  const lines = rows.map((row) => [row.title, ...COLUMNS.map(({ title }, index) => shown(row, title, index === 0))])
  return { table: aligned([head, ...lines]), behind: rows.flatMap(betterThanOurs), rows: rows.length }
}

function rowOf({ scenario, rounds, failures }: Compared, measure: Measure): Row {
  const cells = new Map<string, Cell>()
  for (const { title, contender, importer } of COLUMNS) {
    const name = [contender, importer].find((each) => scenario.contenders.includes(each))
    if (name !== undefined && failures[name] === undefined)
      cells.set(title, resultOf(measure, name, { scenario, rounds }))
  }
  return { title: `${scenario.title}: ${measure.title}`, unit: measure.unit, cells }
}

/** The first column in its unit, the others as ratios to it; all in the unit if the first is nothing. */
function shown({ cells, unit }: Row, title: string, isFirst: boolean): string {
  const cell = cells.get(title)
  if (cell === undefined) return '–'
  const base = cells.get(COLUMNS[0]?.title ?? '')?.value ?? 0
  return isFirst || base === 0 ? `${short(cell.value)} ${unit}` : `${short(cell.ratio)}×`
}

function betterThanOurs({ title, cells }: Row): string[] {
  const ours = cells.get(OURS)
  if (ours === undefined) return [`${title}: ours did not run`]
  const ahead = [...cells].filter(
    ([name, { value, ratio }]) =>
      name !== OURS && !LOOPS.includes(name) && (Number.isFinite(ratio) ? ratio < ours.ratio : value < ours.value),
  )
  if (ahead.length === 0) return []
  return [`${title}: ${ahead.map(([name]) => name).join(', ')}`]
}
