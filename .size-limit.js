import { entries } from './scripts/entries.js'

/** What an import may load at once, minified and compressed; what is loaded when first used is not in it. */
const BUDGETS = {
  thinharness: '44 kB',
  'thinharness/providers': '80 kB',
  'thinharness/tools': '88 kB',
  'thinharness/testing': '37 kB',
  'thinharness/tracing': '18 kB',
  'thinharness/mcp': '64 kB',
  'thinharness/store/sqlite': '14 kB',
  'thinharness/store/postgres': '15 kB',
  'thinharness/durable': '44 kB',
  'thinharness/durable/dbos': '47 kB',
  'thinharness/session': '66 kB',
  'thinharness/policy': '53.5 kB',
  'thinharness/context': '55.5 kB',
  'thinharness/memory': '56 kB',
  'thinharness/ui': '68.5 kB',
  'thinharness/ui/client': '6.5 kB',
  'thinharness/acp': '54 kB',
}

/** What is imported when first used stays outside. */
const notYetLoaded = {
  name: 'not-yet-loaded',
  setup: (build) =>
    build.onResolve({ filter: /^/ }, ({ kind, path }) => (kind === 'dynamic-import' ? { path, external: true } : null)),
}

export default entries.map(({ specifier, output }) => {
  const limit = BUDGETS[specifier]
  if (limit === undefined) throw new Error(`Give \`${specifier}\` a budget in .size-limit.js.`)
  return {
    name: `import '${specifier}'`,
    path: output,
    limit,
    modifyEsbuildConfig: (config) => ({
      ...config,
      platform: 'node',
      format: 'esm',
      packages: 'external',
      // A file is loaded with all that it contains.
      treeShaking: false,
      ignoreAnnotations: true,
      logOverride: { 'ignored-bare-import': 'silent' },
      plugins: [...(config.plugins ?? []), notYetLoaded],
    }),
  }
})
