import type { ResumeState } from '#contracts/result.js'
import { documentOf } from '#core/loop/run-result.js'
import type { ChildStates } from '#core/loop/run-result.js'
import type { RunLog } from '#core/log/log.js'
import { isChildReference } from '#core/state/child-state.js'
import type { ChildReference, StoredChild } from '#core/state/child-state.js'
import { childrenIn } from '#core/state/nested-states.js'
import type { RunState } from '#core/state/state.js'
import { foldLog } from './read-log.js'
import { referenceTo } from './state-digest.js'

/** The documents of child runs that a parent refers to: from this process, or from the log. */
export class ChildDocuments implements ChildStates {
  readonly #log: RunLog
  /** By digest. */
  readonly #known = new Map<string, ResumeState>()

  constructor(log: RunLog) {
    this.#log = log
  }

  /** The reference to a child run that the log holds, given its document. */
  refer(document: ResumeState): ChildReference {
    const reference = referenceTo(document)
    this.#known.set(reference.digest, document)
    return reference
  }

  /** Reads the documents of the child runs that a state contains. A child run that the log does not hold is left out. */
  async load(state: RunState): Promise<void> {
    await this.loadAll(childrenIn(state))
  }

  async loadAll(children: readonly StoredChild[]): Promise<void> {
    for (const child of children) {
      if (!isChildReference(child) || this.#known.has(child.digest)) continue
      const { runId, seq, digest } = child
      const found = await foldLog(this.#log, runId, { upTo: seq })
      if (found?.state.seq !== seq) continue
      await this.load(found.state)
      this.#known.set(
        digest,
        documentOf(found.state, { responses: found.responses, signingKey: null, childOf: this.of }),
      )
    }
  }

  /** The document of a child run; the reference itself if it is not known. */
  readonly of = (child: StoredChild): StoredChild =>
    isChildReference(child) ? (this.#known.get(child.digest) ?? child) : child
}
