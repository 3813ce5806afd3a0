// The measures that are computed from the reports of a scenario.

import type { Report, Work } from './work.js'

export interface Measure {
  readonly title: string
  readonly unit: string
  readonly of: (report: Report, work: Work, round: Round) => number
  /** The ratio to the first contender is shown too. */
  readonly hasRatio?: boolean
  /** By contender. */
  readonly goals?: Readonly<Record<string, Goal>>
}

/** The reports of one round. */
export type Round = (contender: string) => Report

export type Goal = { readonly mostTimes: number } | { readonly most: number } | { readonly least: number }

export const CPU_A_TURN: Measure = {
  title: 'CPU per turn',
  unit: 'ms',
  of: ({ cpuMs }, { runs, turns }) => cpuMs / (runs * turns),
  hasRatio: true,
}

export const ABOVE_CAREFUL: Measure = {
  title: 'above careful',
  unit: 'µs per turn',
  of: ({ cpuMs }, { runs, turns }, round) => ((cpuMs - round('careful').cpuMs) / (runs * turns)) * 1000,
}

export const CPU: Measure = { title: 'CPU', unit: 'ms', of: ({ cpuMs }) => cpuMs, hasRatio: true }

export const PROCESS_CPU: Measure = { title: 'CPU', unit: 'ms', of: ({ processCpuMs }) => processCpuMs, hasRatio: true }

export const WALL_A_TURN: Measure = {
  title: 'wall per turn',
  unit: 'ms',
  of: ({ wallMs }, { runs, turns }) => wallMs / (runs * turns),
}

export const WALL: Measure = { title: 'wall', unit: 'ms', of: ({ wallMs }) => wallMs, hasRatio: true }

export const PEAK: Measure = { title: 'peak memory', unit: 'MB', of: ({ peakMb }) => peakMb }

/** Mean of the last 20 turns less that of the first 20. */
export const GROWTH: Measure = {
  title: 'growth over the run',
  unit: 'ms',
  of: ({ marks }) => meanStep(marks.slice(-21)) - meanStep(marks.slice(0, 21)),
  goals: { thinharness: { most: 0.1 } },
}

export const EVENTS: Measure = {
  title: 'events per CPU second',
  unit: '',
  of: ({ deltas, cpuMs }) => deltas / (cpuMs / 1000),
  goals: { thinharness: { least: 300_000 }, 'thinharness, batches': { least: 450_000 } },
}

/** As a part of the rate of the careful loop: says more than a number of one machine. */
export const EVENTS_BESIDE_CAREFUL: Measure = {
  title: 'relative to careful',
  unit: '',
  of: ({ deltas, cpuMs }, _, round) => deltas / cpuMs / (round('careful').deltas / round('careful').cpuMs),
  goals: { thinharness: { least: 0.5 }, 'thinharness, batches': { least: 0.75 } },
}

export const CPU_BESIDE_CAREFUL: Measure = {
  title: 'times careful',
  unit: '',
  of: ({ cpuMs }, _, round) => cpuMs / round('careful').cpuMs,
}

export function goal(measure: Measure, goals: Readonly<Record<string, Goal>>): Measure {
  return { ...measure, goals }
}

/** Mean of the steps between marks. */
export function meanStep(marks: readonly number[]): number {
  return ((marks.at(-1) ?? 0) - (marks[0] ?? 0)) / Math.max(1, marks.length - 1)
}
