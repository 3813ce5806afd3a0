import type { Harness, LogStore } from 'thinharness'
import { performStretch } from 'thinharness/durable'
import type { StretchEnding, StretchWork } from 'thinharness/durable'

/** The part of `Context` of `@restatedev/restate-sdk` that is used here. */
interface RestateContext {
  run(name: string, work: () => Promise<StretchEnding>): Promise<StretchEnding>
}

/** Handlers for `restate.service({ name: 'runs', handlers: runHandlers(…) })`. */
export function runHandlers(harness: Harness, log: LogStore) {
  return {
    carryOut: (context: RestateContext, work: StretchWork): Promise<StretchEnding> =>
      context.run('stretch', () => performStretch(work, { harness, log })),
  }
}
