import { randomUUID } from 'node:crypto'
import type { Harness, LogStore } from 'thinharness'
import { fromAiSdk } from 'thinharness/providers'
import { Sessions } from 'thinharness/session'
import type { Threads } from 'thinharness/session'

/** `idGenerator`: threads and messages take ids of the caller, and a run has an id that follows from both. */
export async function ask(mine: Threads, prompt: string, newId: () => string = randomUUID) {
  const chat = await mine.create({ threadId: newId() })
  return chat.send(prompt, { messageId: newId() })
}

/** `modelUseCountProvider`: the runs of each model, counted in the log. */
export async function useCounts(log: LogStore): Promise<Map<string, number>> {
  const counts = new Map<string, number>()
  for await (const { model } of log.list({ kind: 'run' })) counts.set(model ?? '', (counts.get(model ?? '') ?? 0) + 1)
  return counts
}

/** `gateways`: a function that turns a reference into a model, from any catalogue. */
export function throughGateway(harness: Harness, gateway: (id: string) => Parameters<typeof fromAiSdk>[0]): Sessions {
  return new Sessions({ harness, resolveModel: (reference) => fromAiSdk(gateway(reference)) })
}
