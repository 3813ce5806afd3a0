// One table: a row for each measure, a column for each contender.
import { aligned, resultOf, short } from '../report.js'
import { COLUMNS, LOOPS, OURS } from './scenarios.js'
import type { Measure } from '../measures.js'
import type { Result } from '../report.js'
import type { Measured, OnNode } from '../rounds.js'

/** A measured row: medians by the title of the column. */
interface Row {
  readonly title: string
  readonly unit: string
  readonly cells: ReadonlyMap<string, Result>
}

export interface Comparison {
  readonly table: string
  /** One sentence for each row in which a library is ahead of ours. */
  readonly behind: readonly string[]
  readonly rows: number
}

/** The comparison on the Node with this index. */
export function comparisonOf(all: readonly Measured[], index: number): Comparison {
  const rows = all.flatMap(({ scenario, nodes }) => {
    const node = nodes[index]
    return node === undefined ? [] : scenario.measures.map((measure) => rowOf({ scenario, node }, measure))
  })
  const head = ['', ...COLUMNS.map(({ title }) => title)]
  const lines = rows.map((row) => [row.title, ...COLUMNS.map(({ title }, index) => shown(row, title, index === 0))])
  return { table: aligned([head, ...lines]), behind: rows.flatMap(betterThanOurs), rows: rows.length }
}

function rowOf(measured: Pick<Measured, 'scenario'> & { readonly node: OnNode }, measure: Measure): Row {
  const { scenario } = measured
  const cells = new Map<string, Result>()
  for (const { title, importer } of COLUMNS) {
    const name = [title, importer].find((each) => scenario.contenders.includes(each))
    const result = name === undefined ? undefined : resultOf(measured, measure, name)
    if (result !== undefined) cells.set(title, result)
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
