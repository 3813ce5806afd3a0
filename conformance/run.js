// npm run conformance:mcp -- [--suite FOLDER] [scenario …]: the official conformance suite for MCP clients against ours,
// for every revision that it knows. The suite needs Node 22 or newer, the client runs on the Node that runs this. Without
// `--suite`, a folder in which it is installed, it is installed from npm, with a newer Node where that is needed.
import { execFile, execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { parseArgs, promisify } from 'node:util'
import { build } from 'tsup'

const SUITE = '@modelcontextprotocol/conformance@0.2.0-alpha.12'
const PLACE = resolve('.build/mcp-conformance')
const EXTENSIONS = ['auth/client-credentials-basic', 'auth/client-credentials-jwt']
/** Of these revisions, but not among what the suite requires. */
const BESIDE = ['2026-07-28', '2025-11-25'].map((revision) => ({
  revision,
  scenario: 'json-schema-2020-12-preservation',
}))
const OLDEST = ['auth/2025-03-26-oauth-metadata-backcompat', 'auth/2025-03-26-oauth-endpoint-fallback']

const { values, positionals } = parseArgs({ allowPositionals: true, options: { suite: { type: 'string' } } })
const suite = installed(resolve(values.suite ?? PLACE))
await build({
  entry: { client: 'conformance/client.ts' },
  outDir: `${PLACE}/client`,
  format: 'esm',
  target: 'node20',
  platform: 'node',
  config: false,
  silent: true,
  skipNodeModulesBundle: true,
})
const command = `${process.execPath} ${PLACE}/client/client.js`

const rows = [
  ...(await required('2026-07-28')),
  ...(await required('2025-11-25')),
  ...BESIDE,
  ...EXTENSIONS.map((scenario) => ({ revision: '2025-11-25', scenario })),
  ...OLDEST.map((scenario) => ({ revision: '2025-03-26', scenario })),
].filter(({ scenario }) => positionals.length === 0 || positionals.includes(scenario))

let failed = 0
for (const row of rows) await check(row)
console.log(`${rows.length - failed} passed, ${failed} failed`)
process.exitCode = failed === 0 ? 0 : 1

/** The program of the suite and the Node for it. */
function installed(folder) {
  const program = `${folder}/node_modules/@modelcontextprotocol/conformance/dist/index.js`
  const isNew = Number(process.versions.node.split('.')[0]) >= 22
  const node = isNew ? process.execPath : `${folder}/node_modules/node-${process.platform}-${process.arch}/bin/node`
  if (!existsSync(program) || !existsSync(node)) {
    mkdirSync(folder, { recursive: true })
    writeFileSync(`${folder}/package.json`, '{ "private": true }')
    const packages = isNew ? [SUITE] : [SUITE, `node-${process.platform}-${process.arch}@24`]
    execFileSync('npm', ['install', '--no-audit', '--no-fund', ...packages], { cwd: folder, stdio: 'inherit' })
  }
  return { node, program }
}

async function required(revision) {
  const { stdout } = await suiteRun('list', '--requirements', revision)
  const scenarios = [...stdout.matchAll(/^ {2}- (\S+)/gm)].map(([, scenario]) => scenario)
  const { stdout: clients } = await suiteRun('list', '--client')
  return scenarios.filter((scenario) => clients.includes(`- ${scenario} `)).map((scenario) => ({ revision, scenario }))
}

async function check({ revision, scenario }) {
  const args = ['client', '--command', command, '--scenario', scenario, '--spec-version', revision]
  const { code, stdout, stderr } = await suiteRun(...args)
  const counts = /Passed: .*/.exec(stdout + stderr)?.[0] ?? ''
  console.log(`${code === 0 ? 'passed' : 'FAILED'}  ${revision} ${scenario}  ${counts}`.trimEnd())
  if (code === 0) return
  failed += 1
  writeFileSync(`${PLACE}/${revision}-${scenario.replaceAll('/', '_')}.log`, stdout + stderr)
}

async function suiteRun(...args) {
  const options = { cwd: PLACE, timeout: 90_000, maxBuffer: 64 * 1024 * 1024 }
  try {
    return { code: 0, ...(await promisify(execFile)(suite.node, [suite.program, ...args], options)) }
  } catch ({ code = 1, stdout = '', stderr = '' }) {
    return { code, stdout, stderr }
  }
}
