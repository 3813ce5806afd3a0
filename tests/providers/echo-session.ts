import type { ModelDelta, TransportRetry, TurnOptions } from 'thinharness'
import type { CacheBust } from '#core/model-session.js'
import { WireSession } from '#providers/wire/wire-session.js'
import type { WireSessionOptions } from '#providers/wire/compact-and-count.js'
import type { TranscriptRepair } from '#contracts/mend.js'
import { echoFormat } from './echo-format.js'
import type { EchoTransport } from './echo-format.js'

export function sessionOver(transport: EchoTransport, more: Partial<WireSessionOptions> = {}): WireSession {
  return new WireSession({
    provider: 'echo',
    model: 'm',
    format: echoFormat,
    capabilities: {},
    transport,
    headers: { 'x-own': 'yes' },
    maxRetries: 0,
    chain: false,
    ...more,
  })
}

/** Options that record their reports. */
export function listening(more: Partial<TurnOptions> = {}): TurnOptions & {
  deltas: ModelDelta[]
  retried: TransportRetry[]
  busts: CacheBust[]
  repairs: TranscriptRepair[]
} {
  const [deltas, retried, busts, repairs] = [[], [], [], []] as [
    ModelDelta[],
    TransportRetry[],
    CacheBust[],
    TranscriptRepair[],
  ]
  return {
    generation: 0,
    signal: new AbortController().signal,
    onRetry: (retry) => retried.push(retry),
    onCacheBust: (bust) => busts.push(bust),
    onRepair: (repair) => repairs.push(repair),
    deltas,
    retried,
    busts,
    repairs,
    ...more,
  }
}

export function hearing(more: Partial<TurnOptions> = {}): ReturnType<typeof listening> {
  const options = listening(more)
  return { ...options, onDelta: (delta) => options.deltas.push(delta) }
}
