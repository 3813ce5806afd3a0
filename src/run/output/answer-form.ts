import { HarnessError } from '#contracts/errors.js'
import type { Model } from '#core/model-session.js'
import type { ModelRef } from '#contracts/model-reference.js'
import type { AnswerPort, OutputFormat } from '#core/state/output-format.js'
import { anyText, outputFormat, parseAnswer } from './parse-answer.js'
import type { AskedOutput } from './parse-answer.js'
import type { OutputType } from '#core/tools/output-type.js'
import type { JsonValue } from '#util/json.js'

/** The answer that a run is asked for. */
export interface RequestedAnswer extends Omit<AskedOutput, 'type'> {
  /** Null: a text. */
  readonly type: OutputType | null
}

/** How the answer of a run is asked for and read. */
export class AnswerForm implements AnswerPort {
  readonly #requested: RequestedAnswer
  /** Of a model that is loaded; undefined before. */
  readonly #format: OutputFormat | null | undefined

  /** Throws `invalid_options` for a model that is loaded and cannot give such an answer. */
  constructor(requested: RequestedAnswer, model: ModelRef | Model) {
    this.#requested = requested
    this.#format = typeof model === 'string' ? undefined : this.#formatFor(model)
  }

  /** Null if any text is an answer. */
  formatFor(model: Model): OutputFormat | null {
    return this.#format === undefined ? this.#formatFor(model) : this.#format
  }

  /** An answer that was kept as JSON, as the caller's schema parses it. */
  async read(json: JsonValue): Promise<unknown> {
    const { type } = this.#requested
    if (type === null) return json
    const parsed = await parseAnswer(type, json)
    if (parsed.ok) return parsed.value
    throw new HarnessError('output_validation_failed', 'The stored answer does not fit the `outputType` any more.')
  }

  #formatFor(model: Model): OutputFormat | null {
    const { type, validate = null } = this.#requested
    if (type === null && validate === null) return null
    return outputFormat({ ...this.#requested, type: type ?? anyText }, model.capabilities)
  }
}
