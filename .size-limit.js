import { entries } from './scripts/entries.js'

/** What an import may load at once, minified and compressed; what is loaded when first used is not in it. */
const BUDGETS = {
  thinharness: '45 kB',
  'thinharness/providers': '86 kB',
  'thinharness/models': '86 kB',
  'thinharness/tools': '93.5 kB',
  'thinharness/testing': '38.5 kB',
  'thinharness/tracing': '18.5 kB',
  'thinharness/mcp': '68.5 kB',
  'thinharness/store/sqlite': '15.5 kB',
  'thinharness/store/postgres': '16 kB',
  'thinharness/durable': '46 kB',
  'thinharness/durable/dbos': '49 kB',
  'thinharness/session': '73.5 kB',
  'thinharness/policy': '59 kB',
  'thinharness/context': '57.5 kB',
  'thinharness/memory': '58 kB',
  'thinharness/ui': '72.5 kB',
  'thinharness/ui/client': '6.5 kB',
  'thinharness/acp': '56 kB',
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
