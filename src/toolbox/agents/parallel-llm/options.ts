import type { ModelSettings, StructuredOutputMode } from '#core/model-session.js'
import type { Model } from '#core/model-session.js'
import type { ModelRef } from '#contracts/model-reference.js'
import type { AgentOutputValidator, InferOutput, OutputType } from '#core/tools/output-type.js'
import type { Schema } from '#schema/schema.js'
import type { JsonSchema } from '#util/json.js'
import type { ToolSpec } from '#core/tools/tool-spec.js'
import { parse } from '#contracts/parse.js'
import { anything, functionOf, integer, oneOf, partial, string } from '#util/validate.js'
import type { FileToolOptions } from '../../workspace/options.js'
import { sharedOptions } from '../../workspace/workspace.js'

/** Options of `parallelLlm`; all optional. */
export interface ParallelLlmOptions<Output = unknown> extends Pick<
  FileToolOptions,
  'root' | 'readPaths' | 'writePaths' | 'protect'
> {
  /** The model that answers. Default: the model of the calling run. */
  readonly model?: ModelRef | Model | undefined
  /** Default: those of the calling run. */
  readonly settings?: ModelSettings | undefined
  /** Default `parallel_llm`. */
  readonly name?: string | undefined
  readonly description?: string | undefined
  /** Added to the system prompt while the tool is offered. */
  readonly instructions?: string | undefined
  /** Most prompts of one call. Default 100. */
  readonly maxPrompts?: number | undefined
  /** Most runs of one prompt, 1 to 10, each with the retries of the model's transport. Default 4. */
  readonly maxAttempts?: number | undefined
  /** The type of each answer; if there are several, the first that it fits. Default: the answers are text. */
  readonly outputType?: OutputType<Output> | undefined
  /** Checks each answer that fits, also plain text: throws `ModelRetry` to have it corrected. Default: none. */
  readonly outputValidator?: AgentOutputValidator<Output> | undefined
  readonly outputMode?: Exclude<StructuredOutputMode, 'text'> | 'auto' | undefined
  /** Corrective requests after an answer that does not fit. Default 1. */
  readonly outputRetries?: number | undefined
}

/** Creates the tool; `outputType` determines the type of `outputValidator`. */
export interface ParallelLlm {
  <const Type extends JsonSchema | readonly Schema[]>(
    options: ParallelLlmOptions<NoInfer<InferOutput<Type>>> & { readonly outputType: Type },
  ): ToolSpec
  <Output = string>(options?: ParallelLlmOptions<Output>): ToolSpec
}

/** The options with their defaults, if they have any. */
export interface ParallelLlmSettings extends ParallelLlmOptions {
  readonly name: string
  readonly maxPrompts: number
  readonly maxAttempts: number
  readonly outputRetries: number
  /** The workspace of prompts and answers. */
  readonly files: FileToolOptions
}

const OPTIONS = partial<ParallelLlmOptions>({
  model: anything(),
  settings: anything(),
  name: string,
  description: string,
  instructions: string,
  root: string,
  readPaths: anything(),
  writePaths: anything(),
  protect: anything(),
  maxPrompts: integer(1),
  maxAttempts: integer(1, 10),
  outputType: anything(),
  outputValidator: functionOf(),
  outputMode: oneOf('auto', 'native', 'tool', 'prompted'),
  outputRetries: integer(0),
})

const DEFAULTS = { name: 'parallel_llm', maxPrompts: 100, maxAttempts: 4, outputRetries: 1 }

/** Throws `invalid_options`, naming the option, the expected and the given value. */
export function parallelLlmSettings(options: ParallelLlmOptions): ParallelLlmSettings {
  const given = parse(OPTIONS, options, '`parallelLlm`')
  const { root, readPaths, writePaths, protect } = given
  return { ...DEFAULTS, ...given, files: sharedOptions({ root, readPaths, writePaths, protect }) }
}
