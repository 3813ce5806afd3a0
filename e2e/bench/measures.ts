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

/** `on24` is the goal from Node 24 on, if it is another. */
export type Goal = ({ readonly mostTimes: number } | { readonly most: number }) & { readonly on24?: number }

export const CPU_A_TURN: Measure = {
  title: 'CPU per turn',
  unit: 'ms',
  of: ({ cpuMs, runs }, { turns }) => cpuMs / (runs * turns),
  hasRatio: true,
}

export const CPU: Measure = { title: 'CPU', unit: 'ms', of: ({ cpuMs }) => cpuMs, hasRatio: true }

export const PROCESS_CPU: Measure = { title: 'CPU', unit: 'ms', of: ({ processCpuMs }) => processCpuMs, hasRatio: true }

export const CPU_A_RUN: Measure = {
  title: 'CPU per run',
  unit: 'µs',
  of: ({ cpuMs, runs }) => (cpuMs / runs) * 1000,
  hasRatio: true,
}

export const CPU_A_CALL: Measure = {
  title: 'CPU per tool call',
  unit: 'ms',
  of: ({ cpuMs, runs }, { turns, calls = 1 }) => cpuMs / (runs * (turns - 1) * calls),
  hasRatio: true,
}

export const CPU_A_DELTA: Measure = {
  title: 'CPU per delta',
  unit: 'µs',
  // Some hand over several deltas as one.
  of: ({ cpuMs, runs }, { deltas = 1 }) => (cpuMs / (runs * deltas)) * 1000,
  hasRatio: true,
}

export const CPU_ABOVE_NODE: Measure = {
  title: 'CPU above bare Node',
  unit: 'ms',
  of: ({ processCpuMs }, _, round) => processCpuMs - round('nothing').processCpuMs,
}

export const WALL: Measure = { title: 'wall', unit: 'ms', of: ({ wallMs }) => wallMs, hasRatio: true }

export const PEAK: Measure = { title: 'peak memory', unit: 'MB', of: ({ peakMb }) => peakMb }

export const MEMORY_A_RUN: Measure = {
  title: 'memory per run',
  unit: 'KB',
  of: ({ grownKb, runs }) => grownKb / runs,
}

/** Mean of the last 20 turns less that of the first 20. */
export const GROWTH: Measure = {
  title: 'growth over the run',
  unit: 'ms',
  of: ({ marks }) => meanStep(marks.slice(-21)) - meanStep(marks.slice(0, 21)),
}

export function goal(measure: Measure, goals: Readonly<Record<string, Goal>>): Measure {
  return { ...measure, goals }
}

/** Mean of the steps between marks. */
export function meanStep(marks: readonly number[]): number {
  return ((marks.at(-1) ?? 0) - (marks[0] ?? 0)) / Math.max(1, marks.length - 1)
}
