import type { InputPort } from '../stream/input.js'
import type { LeftChild } from './started-child.js'

/**
 * Until when runs in the background are listened to: for what they have come to by now; until one of them comes to
 * something, or somebody says something to the run; until none is at work any more.
 */
export type Until = 'now' | 'next' | 'all'

/** The runs in the background of one run, in this process. */
export interface BackgroundWork {
  /** Those that a call has left, now that its end is kept. */
  begin(callId: string, left: readonly LeftChild[]): void
  /** Tells what they have come to: their ends, and what they ask of people. True when there was something. */
  tell(until: Until, input: InputPort | null): Promise<boolean>
  /** Ends those that are at work, and tells that. */
  end(): Promise<void>
}
