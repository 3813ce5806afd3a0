/** Which folders may import which, type imports included. The order is that of the house: what stands below knows nothing of what stands above. */
const core = ['limits', 'money', 'tools', 'model', 'errors', 'report', 'transcript', 'util']

const below = {
  util: [],
  limits: [],
  transcript: ['util'],
  report: ['transcript', 'util'],
  errors: ['report'],
  model: ['errors', 'report', 'transcript', 'util'],
  tools: ['limits', 'model', 'errors', 'report', 'transcript', 'util'],
  output: ['limits', 'tools', 'model', 'errors', 'report', 'transcript', 'util'],
  'option-checks': ['limits', 'model', 'errors', 'report', 'transcript', 'util'],
  money: ['errors', 'model', 'report', 'transcript', 'util'],
  run: ['limits', 'money', 'output', 'tools', 'model', 'errors', 'report', 'transcript', 'util'],
  providers: ['model', 'errors', 'report', 'transcript', 'util'],
  toolbox: ['limits', 'tools', 'model', 'errors', 'report', 'transcript', 'util'],
  mcp: ['tools', 'model', 'errors', 'report', 'transcript', 'util', 'limits'],
  options: [...core, 'output', 'run', 'toolbox'],
  'budget-checks': [...core, 'run', 'options', 'option-checks'],
  config: [...core, 'output', 'run', 'options', 'option-checks', 'budget-checks', 'toolbox'],
  parts: [...core, 'config', 'run', 'providers', 'toolbox'],
  offers: [...core, 'output', 'run', 'config', 'parts'],
  'child-grants': ['errors', 'tools', 'util'],
  plan: [...core, 'budget-checks', 'child-grants', 'output', 'run', 'options', 'config', 'parts', 'offers'],
  launcher: [...core, 'output', 'run', 'options', 'config', 'parts', 'plan'],
  describe: [...core, 'run', 'config'],
  harness: [...core, 'output', 'run', 'options', 'config', 'parts', 'offers', 'describe', 'launcher'],
}

const place = (name) => `^src/${name}(/|\\.ts$)`

const directions = Object.entries(below).map(([name, allowed]) => ({
  name: `${name}-knows-only-what-is-below`,
  severity: 'error',
  from: { path: place(name) },
  to: { path: '^src/', pathNot: [name, ...allowed].map(place) },
}))

/** Adapters do not know each other. */
const siblings = {
  name: 'no-adapter-imports-another',
  severity: 'error',
  from: { path: '^src/providers/([^/]+)/' },
  to: { path: '^src/providers/([^/]+)/', pathNot: '^src/providers/$1/' },
}

/** Optional folders stand on top: they use the core as any user would. */
const onTop = {
  name: 'optional-folders-use-the-public-face',
  severity: 'error',
  from: { path: '^src/testing/' },
  to: { path: '^src/', pathNot: '^src/(testing/|index\\.ts$|providers/index\\.ts$)' },
}

/** The same for tracing, which has the words and the plain values of the lowest layers besides. */
const tracing = {
  name: 'tracing-uses-the-public-face',
  severity: 'error',
  from: { path: '^src/tracing/' },
  to: { path: '^src/', pathNot: '^src/(tracing/|index\\.ts$|report\\.ts$|util/)' },
}

/** Stores keep what a run says of itself: they know the words of a log, and nothing of what makes runs. */
const stores = {
  name: 'stores-know-logs-only',
  severity: 'error',
  from: { path: '^src/store/' },
  to: {
    path: '^src/',
    pathNot: '^src/(store|util)/|^src/(report|errors)\\.ts$|^src/run/(log|events|state|summary|listing|owner)\\.ts$',
  },
}

/** The engines use runs as any host does, and know from an owner's name whether its process is there. */
const durable = {
  name: 'durable-uses-the-public-face',
  severity: 'error',
  from: { path: '^src/durable/' },
  to: { path: '^src/', pathNot: '^src/(durable/|index\\.ts$|run/owner\\.ts$|util/)' },
}

module.exports = {
  forbidden: [
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
    {
      name: 'no-orphans',
      severity: 'error',
      from: { orphan: true, path: '^src/', pathNot: '^src/index\\.ts$' },
      to: {},
    },
    {
      name: 'core-loads-no-package-statically',
      severity: 'error',
      comment: 'What `import "thinharness"` reaches loads packages by import() only, when they are first used.',
      from: {
        path: '^src/(util|transcript|model|money|tools|output|run|report|errors|limits|option-checks|options|config|parts|plan|launcher|harness|index)',
      },
      to: {
        dependencyTypes: ['npm', 'npm-dev', 'npm-optional', 'npm-peer'],
        dependencyTypesNot: ['type-only'],
        dynamic: false,
      },
    },
    {
      name: 'published-types-name-no-optional-package',
      severity: 'error',
      comment: 'Wire types of the official SDKs are imported as types, inside the adapters only.',
      from: {
        path: '^src/',
        pathNot: '^src/(providers/[^/]+/|mcp/|store/postgres-pool|tracing/open-telemetry|durable/)',
      },
      to: { path: 'node_modules/(openai|@anthropic-ai|@modelcontextprotocol|@opentelemetry|pg|@dbos-inc)' },
    },
    {
      name: 'source-imports-no-tests',
      severity: 'error',
      from: { path: '^src/' },
      to: { path: '^(tests|e2e|examples|scripts|bench)/' },
    },
    siblings,
    stores,
    onTop,
    durable,
    tracing,
    ...directions,
  ],
  options: {
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    doNotFollow: { path: 'node_modules' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'types', 'default'],
      extensions: ['.ts', '.d.ts', '.js'],
    },
  },
}
