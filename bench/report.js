// From reports to tables: medians over the rounds, and medians of the ratios within each round.

/** @typedef {import('./scenarios.js').Scenario} Scenario */
/** @typedef {import('./scenarios.js').Measure} Measure */
/** @typedef {import('./scenarios.js').Goal} Goal */
/** @typedef {Readonly<Record<string, import('./work.js').Report>>} RoundReports By contender. */
/** @typedef {{ value: number, ratio: number }} Result */

/**
 * A table in Markdown, and what it shows of the goals.
 * @param {Scenario} scenario @param {readonly RoundReports[]} rounds
 */
export function tableOf(scenario, rounds) {
  const { contenders, measures } = scenario
  const hasGoals = measures.some(({ goals = {} }) => Object.keys(goals).length > 0)
  const rows = [
    ['', ...measures.map(({ title, unit }) => (unit === '' ? title : `${title}, ${unit}`))],
    ...contenders.map((contender) => [
      contender,
      ...measures.map((measure) => cell(measure, resultOf(measure, contender, scenario, rounds))),
    ]),
    ...(hasGoals ? [['goal', ...measures.map(goalsCell)]] : []),
  ]
  return { table: aligned(rows), missed: missedGoals(scenario, rounds) }
}

/** @param {Measure} measure @param {string} contender @param {Scenario} scenario @param {readonly RoundReports[]} rounds */
function resultOf(measure, contender, { contenders, work }, rounds) {
  const values = rounds.map((reports) => {
    /** @param {string} name */
    const round = (name) => {
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

/** @param {readonly number[]} values */
function median(values) {
  const sorted = [...values].sort((left, right) => left - right)
  const middle = sorted.length / 2
  const [low = 0, high = low] = [sorted[Math.ceil(middle) - 1], sorted[Math.floor(middle)]]
  return (low + high) / 2
}

/** @param {Measure} measure @param {Result} result */
function cell({ hasRatio }, { value, ratio }) {
  return hasRatio === true ? `${short(value)} (${short(ratio)}×)` : short(value)
}

/** Three digits; more only before the point. @param {number} value */
function short(value) {
  if (Math.abs(value) >= 1000) return Math.round(value).toLocaleString('en-US')
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2
  return value.toFixed(digits)
}

/** @param {Measure} measure */
function goalsCell({ goals = {} }) {
  return Object.values(goals).map(goalText).join('; ')
}

/** @param {Goal} goal */
function goalText(goal) {
  if ('mostTimes' in goal) return `≤ ${goal.mostTimes}×`
  if ('most' in goal) return `≤ ${goal.most}`
  return `≥ ${short(goal.least)}`
}

/** @param {Scenario} scenario @param {readonly RoundReports[]} rounds */
function missedGoals(scenario, rounds) {
  return scenario.measures.flatMap((measure) =>
    Object.entries(measure.goals ?? {}).flatMap(([contender, goal]) => {
      const result = resultOf(measure, contender, scenario, rounds)
      if (isMet(goal, result)) return []
      return [`${contender}: ${measure.title} ${cell(measure, result)}, goal ${goalText(goal)}`]
    }),
  )
}

/** @param {Goal} goal @param {Result} result */
function isMet(goal, { value, ratio }) {
  if ('mostTimes' in goal) return ratio <= goal.mostTimes
  return 'most' in goal ? value <= goal.most : value >= goal.least
}

/** @param {readonly (readonly string[])[]} rows */
function aligned(rows) {
  const [head = []] = rows
  const widths = head.map((_, column) => Math.max(3, ...rows.map((row) => row[column]?.length ?? 0)))
  /** @param {readonly string[]} row */
  const line = (row) => {
    const cells = row.map((text, column) => {
      const width = widths[column] ?? 0
      return column === 0 ? text.padEnd(width) : text.padStart(width)
    })
    return `| ${cells.join(' | ')} |`
  }
  const rule = widths.map((width, column) => (column === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`))
  return [line(head), `| ${rule.join(' | ')} |`, ...rows.slice(1).map(line)].join('\n')
}
