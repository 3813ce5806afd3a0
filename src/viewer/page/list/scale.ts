/** One axis of time for all rows, on which long pauses are folded. Positions are parts of its width, from 0 to 1. */
export interface TimeScale {
  readonly from: number
  readonly to: number
  readonly at: (ms: number) => number
  /** Folded pauses. */
  readonly gaps: readonly TimeSpan[]
  readonly ticks: readonly { readonly at: number; readonly ms: number }[]
}

export interface TimeSpan {
  readonly from: number
  readonly to: number
}

/** Pauses that are shorter are shown as they are, in ms. */
const SHORTEST_GAP = 2000
/** The part of the axis that a folded pause keeps. */
const GAP = 0.02

/** The scale of a span of time, with its pauses folded. */
export function scaleOf({ from, to }: TimeSpan, pauses: readonly TimeSpan[]): TimeScale {
  const gaps = mergedSpans(pauses)
    .map((gap) => ({ from: Math.max(from, gap.from), to: Math.min(to, gap.to) }))
    .filter((gap) => gap.to - gap.from > SHORTEST_GAP)
  const active = Math.max(1, to - from - lengthOfAll(gaps))
  const each = Math.min(GAP, 0.3 / Math.max(1, gaps.length))
  const rest = 1 - each * gaps.length
  const at = (ms: number) => {
    const time = Math.min(Math.max(ms, from), to)
    let [place, before] = [0, from]
    for (const gap of gaps) {
      if (time <= gap.from) break
      const inside = Math.min(1, (time - gap.from) / (gap.to - gap.from))
      place += ((gap.from - before) / active) * rest + inside * each
      before = gap.to
      if (time < gap.to) return place
    }
    return place + (Math.max(0, time - before) / active) * rest
  }
  return { from, to, at, gaps, ticks: ticksOf({ from, to }, active, { at, gaps }) }
}

function mergedSpans(spans: readonly TimeSpan[]): TimeSpan[] {
  const found: TimeSpan[] = []
  for (const span of [...spans].sort((left, right) => left.from - right.from)) {
    const last = found.at(-1)
    if (last !== undefined && span.from <= last.to)
      found[found.length - 1] = { from: last.from, to: Math.max(last.to, span.to) }
    else found.push(span)
  }
  return found
}

function lengthOfAll(spans: readonly TimeSpan[]): number {
  return spans.reduce((total, { from, to }) => total + to - from, 0)
}

/** At most four ticks, at round numbers of ms of work. */
function ticksOf(
  { from, to }: TimeSpan,
  active: number,
  { at, gaps }: Pick<TimeScale, 'at' | 'gaps'>,
): TimeScale['ticks'] {
  const step = roundStep(active / 4)
  const ticks: { at: number; ms: number }[] = []
  for (let ms = 0; ms <= active; ms += step) {
    let time = from + ms
    for (const gap of gaps) if (time > gap.from) time += gap.to - gap.from
    if (time <= to && at(time) < 0.9) ticks.push({ at: at(time), ms })
  }
  return ticks
}

function roundStep(ms: number): number {
  const units = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 18e5, 36e5]
  return units.find((unit) => unit >= ms) ?? Math.ceil(ms / 36e5) * 36e5
}
