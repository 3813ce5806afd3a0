import { ANSWER, expectEqual, outputWith } from './app.js'

const SDKS = ['@modelcontextprotocol/client@^2', '@modelcontextprotocol/server@^2']
const WITH_MCP = ['Tuesday, by MCP.']
const WITHOUT_MCP = [
  'missing_dependency: `serveMcp` needs `@modelcontextprotocol/server`, which is not installed. Run `npm install @modelcontextprotocol/server`.',
]

/** The same builds with and without the packages of MCP. */
function withAndWithoutMcp(packages, build) {
  return [
    ['a program for Node and one for browsers', async (app) => use(app, [], WITHOUT_MCP)],
    ['a program for Node that contains the MCP SDKs', async (app) => use(app, SDKS, WITH_MCP)],
  ]

  async function use(app, more, lines) {
    app.install(...packages, ...more)
    build(app)
    app.expectOutput('out', lines)
    await app.expectInBrowser('out/browser.js')
  }
}

export function esbuildPrograms() {
  return withAndWithoutMcp(['esbuild@^0.28'], (app) => {
    const common = ['--bundle', '--log-level=warning', '--target=es2022']
    app.bin('esbuild', 'node.js', '--platform=node', '--format=esm', '--outfile=out/node.mjs', ...common)
    app.bin('esbuild', 'browser.js', '--format=iife', '--outfile=out/browser.js', ...common)
  })
}

export function vitePrograms() {
  return withAndWithoutMcp(['vite@^8', 'esbuild@^0.28'], (app) => {
    const build = "outDir: 'out', emptyOutDir: false, target: 'es2022', minify: false"
    app.write(
      'vite.node.mjs',
      `export default { logLevel: 'warn', ssr: { noExternal: true }, build: { ${build}, ssr: 'node.js', rollupOptions: { output: { entryFileNames: '[name].mjs' } } } }`,
    )
    app.write(
      'vite.browser.mjs',
      `export default { logLevel: 'warn', build: { outDir: 'built', target: 'es2022', minify: false, modulePreload: false, rollupOptions: { input: 'browser.js', output: { entryFileNames: '[name].js' } } } }`,
    )
    app.bin('vite', 'build', '--config', 'vite.node.mjs')
    app.bin('vite', 'build', '--config', 'vite.browser.mjs')
    // Vite writes several files for browsers; they are run as one script.
    app.bin('esbuild', 'built/browser.js', '--bundle', '--format=iife', '--target=es2022', '--outfile=out/browser.js')
  })
}

export function rollupPrograms() {
  const plugins = ['node-resolve', 'commonjs', 'json'].map((name) => `@rollup/plugin-${name}`)
  return withAndWithoutMcp(['rollup@^4', 'esbuild@^0.28', ...plugins], (app) => {
    app.write(
      'rollup.config.js',
      `import commonjs from '@rollup/plugin-commonjs'
      import json from '@rollup/plugin-json'
      import resolve from '@rollup/plugin-node-resolve'
      const onLog = (level, { code, message }) => { if (level === 'warn' && code !== 'CIRCULAR_DEPENDENCY' && code !== 'THIS_IS_UNDEFINED' && code !== 'UNRESOLVED_IMPORT') console.log(message) }
      const common = { onLog, treeshake: true }
      export default [
        { ...common, input: 'node.js', plugins: [resolve({ exportConditions: ['node'], preferBuiltins: true }), commonjs({ ignore: ['node:sqlite'] }), json()],
          output: { dir: 'out', format: 'esm', entryFileNames: '[name].mjs', chunkFileNames: '[name]-[hash].mjs' } },
        { ...common, input: 'browser.js', plugins: [resolve({ browser: true }), commonjs(), json()],
          output: { dir: 'built', format: 'esm' } },
      ]`,
    )
    app.bin('rollup', '--config', 'rollup.config.js')
    app.bin('esbuild', 'built/browser.js', '--bundle', '--format=iife', '--target=es2022', '--outfile=out/browser.js')
  })
}

export function webpackPrograms() {
  return withAndWithoutMcp(['webpack@^5'], (app) => {
    app.write(
      'webpack.mjs',
      `import webpack from 'webpack'
      const common = { mode: 'production', optimization: { minimize: false }, context: import.meta.dirname ?? process.cwd() }
      const path = process.cwd() + '/out'
      const run = (config) => new Promise((done, fail) => webpack(config, (error, stats) => {
        if (error ?? stats.hasErrors()) fail(error ?? new Error(stats.toString()))
        else done(stats)
      }))
      await run({ ...common, entry: './node.js', target: 'node20', experiments: { outputModule: true },
        output: { path, filename: 'node.mjs', module: true, chunkFormat: 'module', library: { type: 'module' } } })
      await run({ ...common, entry: './browser.js', target: 'web', output: { path, filename: 'browser.js', asyncChunks: false } })
    `,
    )
    app.run(process.execPath, 'webpack.mjs')
  })
}

/** Cloudflare's runtime. Only the core is used: it needs no `nodejs_compat`. */
export function workers() {
  const flags = { 'without `nodejs_compat`': '', 'with `nodejs_compat`': '"nodejs_compat"' }
  return Object.entries(flags).map(([title, flag]) => [
    `a worker ${title}`,
    async (app) => {
      app.install('esbuild@^0.28', 'workerd@^1')
      const conditions = '--conditions=workerd,worker,browser'
      app.bin(
        'esbuild',
        'worker.js',
        '--bundle',
        '--format=esm',
        conditions,
        '--outfile=worker.mjs',
        '--log-level=warning',
      )
      app.write('config.capnp', app.read('config.capnp').replace('FLAGS', flag))
      const args = ['serve', 'config.capnp', '--control-fd=1', '--socket-addr=http=127.0.0.1:0']
      await app.expectServed({ command: 'workerd', args, ready: /"socket":"http","port":(\d+)/ })
    },
  ])
}

/** Turbopack is the bundler of `next build`. */
export function nextApp() {
  return [
    [
      'a route handler and a client component, by `next build`',
      async (app) => {
        app.install('next@^16', 'react@^19', 'react-dom@^19')
        app.run('sh', '-c', 'mv next/app app')
        app.bin('next', 'build')
        const args = ['start', '--port', '0', '--hostname', '127.0.0.1']
        await app.expectServed({
          command: 'next',
          args,
          ready: /Local:\s+http:\/\/\S+?:(\d+)/,
          path: '/api/ask',
          lines: ['Monday.'],
        })
      },
    ],
  ]
}

/** Other runtimes, from the registry: `node.js` as it is, and as one executable. */
export function runtimes() {
  const bun = (app) => app.programIn('@oven', 'bin/bun')
  const deno = (app) => app.programIn('@deno', 'deno')
  return [
    [
      'Bun, also compiled to one program',
      async (app) => {
        app.install('bun@^1', ...SDKS)
        expectEqual(app.run(bun(app), 'node.js'), outputWith(WITH_MCP))
        app.run(bun(app), 'build', '--compile', 'node.js', '--outfile', 'out/node')
        expectEqual(app.run('out/node'), outputWith(WITH_MCP))
      },
    ],
    [
      'Deno, also without any permission',
      async (app) => {
        app.install('deno@^2', ...SDKS)
        expectEqual(app.run(deno(app), 'run', '-A', 'node.js'), outputWith(WITH_MCP))
        app.write('alone.js', "import { ask } from './agent.js'\nconsole.log(await ask())\n")
        expectEqual(app.run(deno(app), 'run', '--no-prompt', 'alone.js'), `${ANSWER}\n`)
      },
    ],
    [
      'Node by `require()`',
      async (app) => {
        app.install()
        const program = "const { Harness } = require('thinharness'); console.log(typeof Harness)"
        expectEqual(app.run(process.execPath, '-e', program), 'function\n')
      },
    ],
  ]
}
