import { setTimeout as sleep } from 'node:timers/promises'
import { defineExtension, HarnessError } from 'thinharness'
import type { Extension, TranscriptEntry } from 'thinharness'
import { clearResults, observe, summarise } from 'thinharness/context'
import { ScriptedModel } from 'thinharness/testing'
import { oneOf, randomOf } from './random.js'

/** Tokens of a request at which a view is shortened. */
const AT = 400
/** The time that a writer may take, in ms. */
const TIMEOUT = 500

/** The view policy of a scenario; every fourth has none. The writers of observations work in the background. */
export function viewPolicyOf(seed: number): readonly Extension[] {
  const writing = { at: AT, model: writer(), timeoutMs: TIMEOUT, maxTokens: 100 }
  const policies = [() => [], () => [clearResults({ at: AT })], () => [summarise(writing)], () => [observe(writing)]]
  return oneOf(randomOf(seed + 1), policies)?.() ?? []
}

/** Writes something else each time, takes its time, and fails now and then. */
function writer(): ScriptedModel {
  return new ScriptedModel({ id: 'writer' }).always(async () => {
    await sleep(Math.random() * 8)
    const luck = Math.random()
    if (luck < 0.05) throw new HarnessError('provider_error', 'The writer is down.')
    return luck < 0.15 ? '' : `2026-11-23 20:00 · part ${Math.random()} was written`
  })
}

/** The transcripts of runs: their models see views, and reply as if they saw everything. */
export class Transcripts {
  /** By their first entries, which views keep. */
  readonly #whole = new WeakMap<TranscriptEntry, readonly TranscriptEntry[]>()

  readonly extension = defineExtension({
    name: 'transcripts',
    view: ({ transcript }) => {
      if (transcript[0] !== undefined) this.#whole.set(transcript[0], transcript)
      return null
    },
  })

  wholeOf(view: readonly TranscriptEntry[]): readonly TranscriptEntry[] {
    const [first] = view
    return (first === undefined ? undefined : this.#whole.get(first)) ?? view
  }
}
