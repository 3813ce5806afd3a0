import type { Schema } from '#schema/schema.js'
import type { InferOutput } from '#core/tools/output-type.js'
import type { JsonSchema } from '#util/json.js'
import { Harness as HarnessClass } from './harness.js'
import type { DepsOption, HarnessOptions } from './options.js'

/** Creates harnesses, typed by their `outputType`. */
export interface HarnessConstructor {
  // More type parameters than the one below, which is therefore the one that `new Harness<Answer>(…)` means.
  /** Of several output types, whose answers are a union, or of a JSON Schema document, whose answers are JSON. */
  new <const Type extends JsonSchema | readonly Schema[], Output extends InferOutput<Type>, Deps = unknown>(
    options: HarnessOptions<NoInfer<InferOutput<Type>>, Deps> & { readonly outputType: Type } & DepsOption<Deps>,
  ): Harness<Output, Deps>
  /** Throws `invalid_options` if the options are not valid. Does no I/O and loads nothing. */
  new <Output = string, Deps = unknown>(options: HarnessOptions<Output, Deps> & DepsOption<Deps>): Harness<Output, Deps>
  new (): Harness
}

export type Harness<Output = string, Deps = unknown> = HarnessClass<Output, Deps>

/** The class `Harness`, which infers its output from `outputType`. */
export const Harness: HarnessConstructor = HarnessClass
