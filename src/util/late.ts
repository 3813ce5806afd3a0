/** A module that is loaded when it is first needed. */
export interface Late<Module> {
  /** Null until it is loaded. */
  module: Module | null
  /** Calls `import()` no more often than it has to: that costs, also for a module which is there. */
  readonly load: () => Promise<Module>
}

/**
 * A module that is loaded when it is first needed, once for all that need it. A failure is not kept.
 *
 * @example
 * const runs = late(() => import('./launch/launcher.js'))
 * const { RunLauncher } = runs.module ?? (await runs.load())
 */
export function late<Module>(imported: () => Promise<Module>): Late<Module> {
  const known: Late<Module> = { module: null, load: async () => (known.module ??= await imported()) }
  return known
}
