import { defineExtension } from '#core/extension/extension.js'
import type { Extension } from '#core/extension/extension.js'
import type { Schema } from '#schema/schema.js'
import { defineTool } from '#core/tools/define.js'
import type { ToolOptions } from '#core/tools/tool-options.js'
import type { InferOutput } from '#core/tools/output-type.js'
import type { ToolSpec } from '#core/tools/tool-spec.js'
import type { JsonSchema } from '#util/json.js'
import { Harness } from './harness.js'
import type { HarnessOptions } from './options.js'

/** The entry points of an app whose tools share dependencies. */
export interface AppEntryPoints<App> {
  /** `defineTool`, with `context.deps` of the app. */
  readonly defineTool: <S extends Schema>(tool: ToolOptions<S, App>) => ToolSpec<App>
  /** `defineExtension`, with `context.deps` of the app. */
  readonly defineExtension: (extension: Extension<App>) => Extension<App>
  /** Creates harnesses whose runs need `deps`, of the harness or of the call. */
  readonly Harness: AppHarnessConstructor<App>
}

/** Creates harnesses, typed by their `outputType`. */
export interface AppHarnessConstructor<App> {
  new <const Type extends JsonSchema | readonly Schema[], Output extends InferOutput<Type>>(
    options: HarnessOptions<NoInfer<InferOutput<Type>>, App> & { readonly outputType: Type },
  ): Harness<Output, App>
  new <Output = string>(options?: HarnessOptions<Output, App>): Harness<Output, App>
}

/**
 * The entry points of one app, typed by its dependencies. A run without `deps` of the harness or of the call is refused, with
 * `invalid_options`.
 *
 * @example
 * export const { defineTool, defineExtension, Harness } = withDeps<App>()
 */
export function withDeps<App>(): AppEntryPoints<App> {
  class AppHarness<Output = string> extends Harness<Output, App> {
    constructor(options: HarnessOptions<Output, App> = {}) {
      super(options, { needsDeps: true })
    }
  }
  return { defineTool, defineExtension, Harness: AppHarness }
}
