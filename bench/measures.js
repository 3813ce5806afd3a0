// What is read from the reports of a scenario.

/** @typedef {import('./work.js').Report} Report */
/** @typedef {import('./work.js').Work} Work */

/**
 * @typedef {object} Measure
 * @property {string} title
 * @property {string} unit
 * @property {(report: Report, work: Work, round: Round) => number} of
 * @property {boolean} [hasRatio] The ratio to the first contender is shown too.
 * @property {Readonly<Record<string, Goal>>} [goals] By contender.
 */

/** @typedef {(contender: string) => Report} Round The reports of one round. */

/** @typedef {{ mostTimes: number } | { most: number } | { least: number }} Goal */

/** @type {Measure} */
export const CPU_A_TURN = {
  title: 'CPU per turn',
  unit: 'ms',
  of: ({ cpuMs }, { runs, turns }) => cpuMs / (runs * turns),
  hasRatio: true,
}

/** @type {Measure} */
export const ABOVE_CAREFUL = {
  title: 'above careful',
  unit: 'µs per turn',
  of: ({ cpuMs }, { runs, turns }, round) => ((cpuMs - round('careful').cpuMs) / (runs * turns)) * 1000,
}

/** @type {Measure} */
export const CPU = { title: 'CPU', unit: 'ms', of: ({ cpuMs }) => cpuMs, hasRatio: true }

/** @type {Measure} */
export const PROCESS_CPU = { title: 'CPU', unit: 'ms', of: ({ processCpuMs }) => processCpuMs, hasRatio: true }

/** @type {Measure} */
export const WALL_A_TURN = {
  title: 'wall per turn',
  unit: 'ms',
  of: ({ wallMs }, { runs, turns }) => wallMs / (runs * turns),
}

/** @type {Measure} */
export const WALL = { title: 'wall', unit: 'ms', of: ({ wallMs }) => wallMs, hasRatio: true }

/** @type {Measure} */
export const PEAK = { title: 'peak memory', unit: 'MB', of: ({ peakMb }) => peakMb }

/** Mean of the last 20 turns less that of the first 20. @type {Measure} */
export const GROWTH = {
  title: 'growth over the run',
  unit: 'ms',
  of: ({ marks }) => meanStep(marks.slice(-21)) - meanStep(marks.slice(0, 21)),
  goals: { thinharness: { most: 0.1 } },
}

/** @type {Measure} */
export const EVENTS = {
  title: 'events per CPU second',
  unit: '',
  of: ({ deltas, cpuMs }) => deltas / (cpuMs / 1000),
  goals: { thinharness: { least: 300_000 }, 'thinharness, batches': { least: 450_000 } },
}

/** Of what a loop without a library manages that knows what things cost: says more than a number of one machine. @type {Measure} */
export const EVENTS_BESIDE_CAREFUL = {
  title: 'relative to careful',
  unit: '',
  of: ({ deltas, cpuMs }, _, round) => deltas / cpuMs / (round('careful').deltas / round('careful').cpuMs),
  goals: { thinharness: { least: 0.5 }, 'thinharness, batches': { least: 0.75 } },
}

/** @type {Measure} */
export const CPU_BESIDE_CAREFUL = {
  title: 'times careful',
  unit: '',
  of: ({ cpuMs }, _, round) => cpuMs / round('careful').cpuMs,
}

/** @param {Measure} measure @param {Readonly<Record<string, Goal>>} goals @returns {Measure} */
export function goal(measure, goals) {
  return { ...measure, goals }
}

/** Mean of the steps between marks. @param {readonly number[]} marks */
export function meanStep(marks) {
  return ((marks.at(-1) ?? 0) - (marks[0] ?? 0)) / Math.max(1, marks.length - 1)
}
