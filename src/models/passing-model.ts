import type { ModelRun } from '#contracts/attempt.js'
import type { Model, ModelSession } from '#core/model-session.js'

/** A model around another one, which it is by name and by what it can. Its sessions ask by `askPrepaid`. */
export abstract class PassingModel implements Model {
  readonly inner: Model
  readonly provider: string
  readonly id: string
  readonly capabilities: Model['capabilities']
  readonly computed: Model['computed']
  readonly requestBytes: Model['requestBytes']
  readonly candidates: NonNullable<Model['candidates']>
  readonly reserves = true
  readonly countTokens: Model['countTokens']
  readonly compact: Model['compact']

  constructor(inner: Model) {
    this.inner = inner
    this.provider = inner.provider
    this.id = inner.id
    this.capabilities = inner.capabilities
    this.computed = inner.computed
    this.requestBytes = inner.requestBytes
    this.candidates = inner.candidates ?? [inner]
    this.countTokens = inner.countTokens?.bind(inner)
    this.compact = inner.compact?.bind(inner)
  }

  abstract openSession(run?: ModelRun): ModelSession

  check(): void {
    this.inner.check?.()
  }

  async connect(): Promise<void> {
    await this.inner.connect?.()
  }

  async close(): Promise<void> {
    await this.inner.close?.()
  }
}
