/**
 * Which rooms may import which; type imports count. One row per room, from the ground up: a room imports only from rooms
 * above its row. `npm run check:house` draws the same picture and finds circles inside the rooms.
 */
const below = {
  util: [],
  contracts: ['util'],
  schema: ['util', 'contracts'],
  core: ['util', 'contracts', 'schema'],
  run: ['util', 'contracts', 'schema', 'core'],
  store: ['util', 'contracts', 'core', 'run'],
  providers: ['util', 'contracts', 'schema', 'core'],
  toolbox: ['util', 'contracts', 'schema', 'core'],
  models: ['util', 'contracts', 'core', 'run', 'providers'],
  harness: ['util', 'contracts', 'schema', 'core', 'run', 'store', 'providers', 'toolbox'],
  index: ['util', 'contracts', 'schema', 'core', 'run', 'store', 'harness'],
  testing: ['util', 'contracts', 'core', 'harness'],
  extensions: ['util', 'contracts', 'schema', 'core', 'run', 'store', 'providers', 'toolbox', 'harness'],
  session: ['util', 'contracts', 'schema', 'core', 'harness', 'extensions'],
  adapters: ['util', 'contracts', 'schema', 'core', 'run', 'store', 'toolbox', 'harness', 'extensions', 'session'],
}

/** Inside a room: what its folders may import of the room. Folders that are not named may import what their room may. */
const inside = {
  'core/tools': ['core/model-session'],
  'core/state': ['core/model-session', 'core/tools', 'core/money-port'],
  'core/log': ['core/state'],
  'core/stream': ['core/state'],
  'core/extension': ['core/model-session', 'core/tools', 'core/state', 'core/money-port'],
  'providers/http': [],
  'providers/wire': ['providers/http'],
  'providers/hosted': ['providers/http', 'providers/wire'],
  'providers/transports': ['providers/http', 'providers/wire'],
  'providers/anthropic': ['providers/http', 'providers/wire', 'providers/hosted'],
  'providers/openai': ['providers/http', 'providers/wire', 'providers/hosted', 'providers/transports'],
  'providers/chat': ['providers/http', 'providers/wire', 'providers/hosted'],
  'providers/google': ['providers/http', 'providers/wire', 'providers/hosted'],
  'providers/embedding': ['providers/http', 'providers/wire'],
  'providers/ai-sdk': ['providers/http', 'providers/wire', 'providers/hosted'],
}

const place = (name) => `^src/${name}(/|\\.ts$)`

const directions = [
  ...Object.entries(below).map(([name, allowed]) => [name, [name, ...allowed]]),
  ...Object.entries(inside).map(([name, allowed]) => [name, [name, ...allowed, ...below[name.split('/')[0]]]]),
].map(([name, allowed]) => ({
  name: `${name}-imports-only-what-is-below`,
  severity: 'error',
  from: { path: place(name) },
  to: { path: '^src/', pathNot: allowed.map(place) },
}))

module.exports = {
  forbidden: [
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
    {
      name: 'no-orphans',
      severity: 'error',
      from: { orphan: true, path: '^src/', pathNot: '^src/index\\.ts$|\\.d\\.ts$' },
      to: {},
    },
    {
      name: 'an-index-is-what-users-get',
      severity: 'error',
      comment:
        'Modules import the module that defines a name; an index.ts is a public import path, or loads its folder.',
      from: { path: '^src/', pathNot: ['/index\\.ts$', '^src/command/'] },
      to: { path: '^src/index\\.ts$' },
    },
    {
      name: 'core-loads-no-package-statically',
      severity: 'error',
      comment: 'What `import "thinharness"` reaches loads packages by import() only, when they are first used.',
      from: {
        path: '^src/(util|contracts|schema|core|run|harness|index)',
      },
      to: {
        dependencyTypes: ['npm', 'npm-dev', 'npm-optional', 'npm-peer'],
        dependencyTypesNot: ['type-only'],
        dynamic: false,
      },
    },
    {
      name: 'core-loads-nothing-later',
      severity: 'error',
      comment: 'The first run loads everything that its plan needs, in src/harness/.',
      from: { path: '^src/core/', pathNot: '^src/core/tools/' },
      to: { dynamic: true },
    },
    {
      name: 'published-types-name-no-optional-package',
      severity: 'error',
      comment: 'Wire types of the official SDKs are imported as types, inside the adapters only.',
      from: {
        path: '^src/',
        pathNot:
          '^src/(providers/[^/]+/|adapters/mcp/|adapters/durable/|store/postgres-pool|extensions/tracing/open-telemetry)',
      },
      to: { path: 'node_modules/(openai|@anthropic-ai|@modelcontextprotocol|@opentelemetry|pg|@dbos-inc)' },
    },
    {
      name: 'source-imports-no-tests',
      severity: 'error',
      from: { path: '^src/' },
      to: { path: '^(tests|e2e|examples|scripts)/' },
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
      extensions: ['.ts', '.tsx', '.d.ts', '.js'],
    },
  },
}
