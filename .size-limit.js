import { entries } from './scripts/entries.js'

/** What an import may load at once, minified and compressed; what is loaded when first used is not in it. */
const BUDGETS = {
  thinharness: '44 kB',
  'thinharness/providers': '57.5 kB',
  'thinharness/tools': '67.5 kB',
  'thinharness/testing': '45 kB',
  'thinharness/tracing': '24 kB',
  'thinharness/mcp': '40.5 kB',
  'thinharness/store/sqlite': '23 kB',
  'thinharness/store/postgres': '24 kB',
  'thinharness/durable': '18 kB',
  'thinharness/durable/dbos': '21 kB',
  'thinharness/session': '69 kB',
  'thinharness/policy': '53.5 kB',
  'thinharness/context': '55.5 kB',
  'thinharness/memory': '55 kB',
  'thinharness/ui': '71.5 kB',
  'thinharness/ui/client': '6 kB',
  'thinharness/acp': '55 kB',
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
