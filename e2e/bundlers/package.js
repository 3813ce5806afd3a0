import { readFileSync } from 'node:fs'
import { expectEqual } from './app.js'

const manifest = JSON.parse(readFileSync('package.json', 'utf8'))
const paths = Object.keys(manifest.exports)
  .filter((path) => path !== './package.json')
  .map((path) => manifest.name + path.slice(1))

/** The package by itself, as it is after `npm install thinharness` in an empty folder. */
export function packageTrials() {
  return [
    ['each import path, with nothing but what the package brings along', everyImport],
    ['the types of each import path, by the strictest `tsc`', everyType],
    ['the command: help, `init`, a run and its log', command],
    ['a page with the React hooks, bundled and rendered', reactPage],
  ]
}

async function everyImport(app) {
  app.install('react@^18')
  app.write(
    'all.js',
    paths.map((path, index) => `import * as e${index} from '${path}'`).join('\n') + "\nconsole.log('loaded')\n",
  )
  expectEqual(app.run(process.execPath, 'all.js'), 'loaded\n')
}

async function everyType(app) {
  app.install(
    'typescript@~6.0',
    '@types/node@^22',
    '@agentclientprotocol/sdk@^2.4',
    'react@^19',
    '@types/react@^19',
    'zod@^4',
  )
  const names = paths.map((_, index) => `e${index}`).join(', ')
  app.write(
    'all.ts',
    `${paths.map((path, index) => `import * as e${index} from '${path}'`).join('\n')}
export const all: readonly object[] = [${names}]
import { defineTool, Harness } from 'thinharness'
import { useChatThread } from 'thinharness/ui/react'
import { z } from 'zod'
const tool = defineTool({ name: 'add', description: 'Adds.', parameters: z.object({ a: z.number() }), handler: ({ a }) => a.toFixed() })
export const harness = new Harness({ model: 'openai:gpt-5.5', tools: [tool] })
export const phase = (): 'idle' | 'running' | 'waiting' => useChatThread({ threadId: 't1' }).phase
`,
  )
  const strict = [
    '--strict',
    '--exactOptionalPropertyTypes',
    '--noUncheckedIndexedAccess',
    '--noEmit',
    '--target',
    'es2022',
  ]
  const lib = ['--lib', 'es2023,dom,dom.iterable,esnext.disposable', '--types', 'node']
  for (const [module, resolution] of [
    ['nodenext', 'nodenext'],
    ['esnext', 'bundler'],
  ])
    app.bin('tsc', ...strict, ...lib, '--module', module, '--moduleResolution', resolution, 'all.ts')
}

async function command(app) {
  app.install()
  if (!app.bin('thinharness', '--help').includes('init')) throw new Error('Expected `--help` to name `init`.')
  expectEqual(app.bin('thinharness', '--version').trim(), manifest.version)
  app.bin('thinharness', 'init', 'agent', '--example', 'starter')
}

async function reactPage(app) {
  app.install('react@^19', 'react-dom@^19', 'esbuild@^0.28')
  app.write(
    'page.jsx',
    `import { renderToString } from 'react-dom/server'
import { chatItems, useChatThread } from 'thinharness/ui/react'
function Chat() {
  const { phase, runs } = useChatThread({ threadId: 't1' })
  return <p>{phase} {chatItems(runs).length}</p>
}
console.log(renderToString(<Chat />))
`,
  )
  const options = ['--bundle', '--jsx=automatic', '--platform=node', '--format=cjs', '--log-level=warning']
  app.bin('esbuild', 'page.jsx', ...options, '--outfile=out/node.cjs')
  expectEqual(app.run(process.execPath, 'out/node.cjs'), '<p>idle<!-- --> <!-- -->0</p>\n')
}
