import type { ContentSource } from './entry.js'

/** Content of a source in an argument of a call. */
export interface ContentFlow {
  /** Member of the call's arguments; empty if a call without arguments is held because of earlier content. */
  readonly argument: string
  readonly source: ContentSource
  /** The call that returned it. */
  readonly callId: string
  /** `exact`: all of the argument is in it; `near`: a part; `taint`: the content came earlier, whatever the argument is. */
  readonly match: 'exact' | 'near' | 'taint'
}

/** The untrusted content that a call would carry, for the person who is asked about the call. */
export interface Flows {
  readonly provenance?: readonly ContentFlow[] | undefined
}

export function hasFlows({ provenance = [] }: Flows): boolean {
  return provenance.length > 0
}

/** The flows alone, if there are any. */
export function flowsIn({ provenance = [] }: Flows): Flows {
  return provenance.length > 0 ? { provenance } : {}
}
