import fc from 'fast-check'
import { expect, test } from 'vitest'
import { plannedRuns } from './plans.js'
import { record } from './recorded-run.js'

const WANTED = [
  'text_delta',
  'reasoning_delta',
  'tool_input_delta',
  'deltas_withdrawn',
  'tool_progress',
  'approval_requested',
  'answer_received',
  'background_reported',
  'child text_delta',
  'resumed',
  'model_retry',
  'call_prepared',
  'output_delta',
  'failed with cancelled',
  'failed with limit_reached',
  'failed with provider_error',
  'failed with tool_retries_exceeded',
  'failed with output_validation_failed',
  'failed with unexpected_model_behavior',
]

test(
  'planned runs have events of every kind that readers are told of, live and stored',
  { timeout: 60_000 },
  async () => {
    const kinds = new Set<string>()
    const count = (name: string): void => void kinds.add(name)
    const runs = fc.sample(plannedRuns(), { numRuns: 150, seed: 7 })
    for (const planned of runs) {
      if (WANTED.every((kind) => kinds.has(kind))) break
      const { live, own, stored, runId, pending, stretches } = await record(planned)
      for (const event of live) count(event.runId === runId ? event.kind : `child ${event.kind}`)
      const storedOwn = stored.filter((event) => event.runId === runId)
      expect(storedOwn).toEqual(own)
      const liveStored = live.filter((event) => event.durable && event.runId === runId).map(({ seq }) => seq)
      expect(own.map(({ seq }) => seq)).toEqual(liveStored)
      const last = own.at(-1)
      count(
        last?.kind === 'run_failed' ? `failed with ${last.code}` : pending.length > 0 ? 'still waiting' : 'completed',
      )
      count(stretches.length > 1 ? 'resumed' : 'in one stretch')
    }
    expect(WANTED.filter((kind) => !kinds.has(kind))).toEqual([])
  },
)
