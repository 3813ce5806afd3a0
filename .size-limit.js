import { entries } from './scripts/entries.js'

/** What an import may load at once, minified and compressed; what is loaded when first used is not in it. */
const BUDGETS = {
  thinharness: '52 kB',
  'thinharness/providers': '90 kB',
  'thinharness/models': '111 kB',
  'thinharness/tools': '105.5 kB',
  'thinharness/testing': '46.5 kB',
  'thinharness/tracing': '20.5 kB',
  'thinharness/mcp': '75.5 kB',
  'thinharness/store/sqlite': '19.5 kB',
  'thinharness/store/postgres': '20 kB',
  'thinharness/durable': '53 kB',
  'thinharness/durable/dbos': '56 kB',
  'thinharness/session': '85.5 kB',
  'thinharness/policy': '66 kB',
  'thinharness/context': '68.5 kB',
  'thinharness/memory': '65.5 kB',
  'thinharness/ui': '88.5 kB',
  'thinharness/ui/client': '6.5 kB',
  'thinharness/ui/store': '8.5 kB',
  'thinharness/ui/react': '9.5 kB',
  'thinharness/viewer': '20.5 kB',
  'thinharness/acp': '72 kB',
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
