/**
 * Which folders may import which; type imports count. One row per folder, in the order of the architecture: a folder
 * imports only from rows above it.
 */
const vocabulary = ['util', 'contracts', 'schema']
const definitions = [...vocabulary, 'tools', 'output', 'money']
const machine = [...definitions, 'run/machine']
const run = [
  ...machine,
  'run/log',
  'run/extension',
  'run/stream',
  'run/provenance',
  'run/resume',
  'run/core',
]

const below = {
  util: [],
  contracts: ['util'],
  schema: ['util', 'contracts'],
  tools: vocabulary,
  output: [...vocabulary, 'tools'],
  money: vocabulary,
  'run/machine': definitions,
  'run/log': machine,
  'run/extension': [...machine],
  'run/stream': machine,
  'run/provenance': [...machine, 'run/extension'],
  'run/stall': [...machine, 'run/extension'],
  'run/resume': [...machine, 'run/log', 'run/core', 'run/resume'],
  'run/core': [...machine, 'run/log', 'run/extension', 'run/stream'],
  'run/children': run,
  'run/calls': [...run, 'run/children'],
  'run/replay': [...run, 'run/children'],
  'run/loop': [...run, 'run/children', 'run/calls', 'run/replay'],
  store: ['util', 'contracts', 'run/machine', 'run/log', 'run/core', 'run/resume'],
  'providers/http': vocabulary,
  'providers/wire': [...vocabulary, 'providers/http'],
  'providers/anthropic': [...vocabulary, 'providers/http', 'providers/wire'],
  'providers/openai': [...vocabulary, 'providers/http', 'providers/wire'],
  'providers/chat': [...vocabulary, 'providers/http', 'providers/wire'],
  'providers/ai-sdk': [...vocabulary, 'providers/http', 'providers/wire'],
  toolbox: [...vocabulary, 'tools', 'run/extension'],
  mcp: [...vocabulary, 'tools', 'toolbox/sandbox'],
  harness: [...definitions, 'run', 'store', 'providers', 'toolbox'],
  testing: ['util', 'contracts', 'index', 'providers/index'],
  tracing: ['util', 'contracts', 'index'],
  durable: ['util', 'contracts', 'run/log', 'index'],
  policy: [...vocabulary, 'index', 'run/provenance'],
  context: [...vocabulary, 'index', 'providers/index'],
  memory: [...vocabulary, 'index', 'run/log', 'store/postgres-pool', 'toolbox/files/load-document', 'toolbox/workspace/spill'],
  session: [...vocabulary, 'index', 'policy'],
  ui: [...vocabulary, 'output', 'index', 'policy', 'session'],
  acp: ['util', 'contracts', 'index', 'mcp', 'session', 'ui'],
}

const place = (name) => `^src/${name}(/|\\.ts$)`

const directions = Object.entries(below).map(([name, allowed]) => ({
  name: `${name}-imports-only-what-is-below`,
  severity: 'error',
  from: { path: place(name) },
  to: { path: '^src/', pathNot: [name, ...allowed].map(place) },
}))

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
        path: '^src/(util|contracts|schema|money|tools|output|run|harness|index)',
      },
      to: {
        dependencyTypes: ['npm', 'npm-dev', 'npm-optional', 'npm-peer'],
        dependencyTypesNot: ['type-only'],
        dynamic: false,
      },
    },
    {
      name: 'run-loads-nothing-later',
      severity: 'error',
      comment: 'The first run loads everything that its plan needs, in src/harness/.',
      from: { path: '^src/run/' },
      to: { dynamic: true },
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
