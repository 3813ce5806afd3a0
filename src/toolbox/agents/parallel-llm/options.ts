import { HarnessError } from '../../../contracts/errors.js'
import type { ModelSettings, StructuredOutputMode } from '../../../contracts/model.js'
import type { Model } from '../../../contracts/model.js'
import type { ModelRef } from '../../../contracts/model-reference.js'
import type { AgentOutputValidator, InferOutput, OutputType } from '../../../tools/output-type.js'
import type { Schema } from '../../../schema/schema.js'
import type { JsonSchema } from '../../../util/json.js'
import type { ToolSpec } from '../../../tools/spec.js'
import { unknownKey } from '../../../util/unknown-key.js'
import type { FileToolOptions } from '../../workspace/options.js'

/** What `parallelLlm` can be told; every field is optional. */
export interface ParallelLlmOptions<Output = unknown> extends Pick<
  FileToolOptions,
  'root' | 'readPaths' | 'writePaths'
> {
  /** Who is asked. Default: the model of the run that calls. */
  readonly model?: ModelRef | Model
  /** Default: those of the run that calls. */
  readonly settings?: ModelSettings
  /** Default `parallel_llm`. */
  readonly name?: string
  readonly description?: string
  /** Added to the system prompt while the tool is offered. */
  readonly instructions?: string
  /** Most prompts of one call. Default 100. */
  readonly maxPrompts?: number
  /** Runs that one prompt may take, 1 to 10, each behind the retries of the model's own transport. Default 4. */
  readonly maxAttempts?: number
  /** What each answer is parsed as; of several types, by the first that it fits. Default: the answers are text. */
  readonly outputType?: OutputType<Output>
  /** Checks each answer that fits, of text too: throws `ModelRetry` to have it mended. Default: none. */
  readonly outputValidator?: AgentOutputValidator<Output>
  readonly outputMode?: Exclude<StructuredOutputMode, 'text'> | 'auto'
  /** Corrective requests after an answer that does not fit. Default 1. */
  readonly outputRetries?: number
}

/** Makes the tool, its check typed by its `outputType`. */
export interface ParallelLlm {
  <const Type extends JsonSchema | readonly Schema[]>(
    options: ParallelLlmOptions<NoInfer<InferOutput<Type>>> & { readonly outputType: Type },
  ): ToolSpec
  <Output = string>(options?: ParallelLlmOptions<Output>): ToolSpec
}

/** The options with their defaults, as far as they have any. */
export interface ParallelLlmSettings extends ParallelLlmOptions {
  readonly name: string
  readonly maxPrompts: number
  readonly maxAttempts: number
  readonly outputRetries: number
  /** Where prompts are read and answers written. */
  readonly files: FileToolOptions
}

const KNOWN = [
  ...['model', 'settings', 'name', 'description', 'instructions', 'root', 'readPaths', 'writePaths', 'maxPrompts'],
  ...['maxAttempts', 'outputType', 'outputMode', 'outputRetries', 'outputValidator'],
]
const MODES = ['auto', 'native', 'tool', 'prompted']

/** @throws HarnessError `invalid_options`, naming the option, what was expected and what came. */
export function parallelLlmSettings(options: ParallelLlmOptions): ParallelLlmSettings {
  const unknown = unknownKey(options, KNOWN, 'option of `parallelLlm`')
  if (unknown !== undefined) throw invalid(unknown)
  const { name = 'parallel_llm', maxPrompts = 100, maxAttempts = 4, outputRetries = 1 } = options
  checkWhole('maxPrompts', maxPrompts, 1, Number.MAX_SAFE_INTEGER)
  checkWhole('maxAttempts', maxAttempts, 1, 10)
  checkWhole('outputRetries', outputRetries, 0, Number.MAX_SAFE_INTEGER)
  const { outputMode = 'auto', root, readPaths, writePaths } = options
  if (!MODES.includes(outputMode)) {
    throw invalid(
      `Expected \`outputMode\` of \`parallelLlm\` to be one of ${MODES.map((mode) => `\`${mode}\``).join(', ')}, got \`${outputMode}\`.`,
    )
  }
  const files = {
    ...(root !== undefined && { root }),
    ...(readPaths !== undefined && { readPaths }),
    ...(writePaths !== undefined && { writePaths }),
  }
  return { ...options, name, maxPrompts, maxAttempts, outputRetries, files }
}

function checkWhole(name: string, value: unknown, least: number, most: number): void {
  if (Number.isSafeInteger(value) && Number(value) >= least && Number(value) <= most) return
  const range = most === Number.MAX_SAFE_INTEGER ? `from ${least} up` : `from ${least} to ${most}`
  throw invalid(`Expected \`${name}\` of \`parallelLlm\` to be a whole number ${range}, got \`${String(value)}\`.`)
}

function invalid(message: string): HarnessError {
  return new HarnessError('invalid_options', message)
}
