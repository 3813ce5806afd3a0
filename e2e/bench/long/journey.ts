// A long run over a real tree, and what it has cost.
import { defineExtension, Harness } from 'thinharness'
import type { Extension, Model, TranscriptEntry } from 'thinharness'
import { lostIn } from './reach.js'
import type { Tree } from './trees.js'

/** Turns of a row. */
const ROW = 500

export interface JourneyOptions {
  readonly tree: Tree
  readonly model: Model
  readonly policy: Extension
  readonly runId: string
  /** Called after each 500 turns. */
  readonly onRow?: (row: Row) => void
}

/** What some turns have cost. */
export interface Row {
  /** Turns so far. */
  readonly turns: number
  readonly changes: number
  /** CPU of this process per turn, with encoding, tools and log, in ms. */
  readonly cpuMs: number
  /** Input tokens of the longest request. */
  readonly longest: number
  /** The share of the input, between two changes of the view, that was read from the cache. */
  readonly cached: number
}

export interface Journey {
  readonly requests: number
  readonly entries: number
  readonly changes: number
  /** Requests that the provider refused. */
  readonly refused: number
  readonly longest: number
  readonly inputTokens: number
  readonly cached: number
  /** Tokens that models used to write about the conversation. */
  readonly writerTokens: number
  /** Entries that no handle in the last view leads to, or whose text \`recall\` does not return. */
  readonly lost: readonly string[]
  /** CPU per turn of the last rows, as a multiple of that of the first ones. */
  readonly growth: number
}

/** Counters of a row and of the run. */
class Sums {
  turns = 0
  changes = 0
  refused = 0
  longest = 0
  input = 0
  all = 0
  read = 0
  writer = 0
}

export async function travel({ tree, model, policy, runId, onRow }: JourneyOptions): Promise<Journey> {
  let view: readonly TranscriptEntry[] = []
  const watching = defineExtension({
    name: 'watching',
    wrapModelCall: (call, next) => {
      view = call.transcript
      return next(call)
    },
  })
  const limits = { modelRequests: null, toolCalls: null }
  await using harness = new Harness({ model, root: tree.root, use: [policy, watching], limits })
  const stream = harness.stream('Explore the packages.', { runId, deltas: false })
  const [whole, rows] = [new Sums(), [] as Row[]]
  let row = new Sums()
  let [cpu, isRestarted] = [process.cpuUsage(), true]
  for await (const event of stream) {
    const both = [whole, row]
    if (event.kind === 'transport_retry') for (const sums of both) sums.refused += 1
    if (event.kind === 'view_changed' || event.kind === 'view_prepared') {
      const { inputTokens = 0, outputTokens = 0 } = event.usage ?? {}
      for (const sums of both) sums.writer += (inputTokens ?? 0) + (outputTokens ?? 0)
    }
    if (event.kind === 'view_changed' && event.changes.length > 0) {
      for (const sums of both) sums.changes += 1
      isRestarted = true
    }
    if (event.kind !== 'model_message') continue
    const { inputTokens, cacheReadTokens } = event.entry.usage
    for (const sums of both) {
      sums.turns += 1
      sums.all += inputTokens ?? 0
      sums.longest = Math.max(sums.longest, inputTokens ?? 0)
      if (isRestarted) continue
      sums.input += inputTokens ?? 0
      sums.read += cacheReadTokens ?? 0
    }
    isRestarted = false
    if (row.turns < ROW) continue
    const { user, system } = process.cpuUsage(cpu)
    const { changes, longest, read, input } = row
    rows.push({ turns: whole.turns, changes, cpuMs: (user + system) / 1000 / ROW, longest, cached: read / input })
    onRow?.(rows.at(-1) as Row)
    cpu = process.cpuUsage()
    row = new Sums()
  }
  const { transcript } = await stream.result
  return {
    requests: whole.turns,
    entries: transcript.length,
    changes: whole.changes,
    refused: whole.refused,
    longest: whole.longest,
    inputTokens: whole.all,
    cached: whole.read / whole.input,
    writerTokens: whole.writer,
    lost: await lostIn(view, transcript, runId),
    growth: growthOf(rows),
  }
}

/** The first row warms up, and its requests are shorter. */
function growthOf([, ...rows]: readonly Row[]): number {
  const half = Math.floor(rows.length / 2)
  const mean = (some: readonly Row[]): number => some.reduce((sum, { cpuMs }) => sum + cpuMs, 0) / some.length
  return half === 0 ? 1 : mean(rows.slice(-half)) / mean(rows.slice(0, half))
}
