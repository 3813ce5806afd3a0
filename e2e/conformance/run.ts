// npm run conformance:mcp -- [--suite FOLDER] [scenario …]: runs the official conformance suite for MCP clients against
// this package, for every revision of the protocol in the suite. The suite needs Node 22 or newer, the client runs on the
// Node that runs this. Without `--suite`, the folder of an installed suite, it is installed from npm, with a newer Node if
// needed.
import { execFile, execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs, promisify } from 'node:util'

/** A scenario of the suite in one revision of the protocol. */
interface Scenario {
  readonly revision: string
  readonly scenario: string
}

/** The program of the suite and the Node for it. */
interface Suite {
  readonly node: string
  readonly program: string
}

/** A run of the suite's program that has ended. */
interface Ended {
  readonly code: number | string
  readonly stdout: string
  readonly stderr: string
}

const SUITE = '@modelcontextprotocol/conformance@0.2.0-alpha.12'
const PLACE = resolve('.build/mcp-conformance')
const EXTENSIONS = ['auth/client-credentials-basic', 'auth/client-credentials-jwt']
/** Scenarios of these revisions that the suite does not require. */
const BESIDE = ['2026-07-28', '2025-11-25'].map((revision) => ({
  revision,
  scenario: 'json-schema-2020-12-preservation',
}))
const OLDEST = ['auth/2025-03-26-oauth-metadata-backcompat', 'auth/2025-03-26-oauth-endpoint-fallback']

const { values, positionals } = parseArgs({ allowPositionals: true, options: { suite: { type: 'string' } } })
mkdirSync(PLACE, { recursive: true })
const suite = installed(resolve(values.suite ?? PLACE))
const command = `${process.execPath} ${fileURLToPath(new URL('client.js', import.meta.url))}`

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

/** Installs the suite if it is missing. */
function installed(folder: string): Suite {
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

async function required(revision: string): Promise<readonly Scenario[]> {
  const { stdout } = await suiteRun(['list', '--requirements', revision])
  const scenarios = [...stdout.matchAll(/^ {2}- (\S+)/gm)].map(([, scenario = '']) => scenario)
  const { stdout: clients } = await suiteRun(['list', '--client'])
  return scenarios.filter((scenario) => clients.includes(`- ${scenario} `)).map((scenario) => ({ revision, scenario }))
}

async function check({ revision, scenario }: Scenario): Promise<void> {
  const args = ['client', '--command', command, '--scenario', scenario, '--spec-version', revision]
  const { code, stdout, stderr } = await suiteRun(args)
  const counts = /Passed: .*/.exec(stdout + stderr)?.[0] ?? ''
  console.log(`${code === 0 ? 'passed' : 'FAILED'}  ${revision} ${scenario}  ${counts}`.trimEnd())
  if (code === 0) return
  failed += 1
  writeFileSync(`${PLACE}/${revision}-${scenario.replaceAll('/', '_')}.log`, stdout + stderr)
}

async function suiteRun(args: readonly string[]): Promise<Ended> {
  const options = { cwd: PLACE, timeout: 90_000, maxBuffer: 64 * 1024 * 1024 }
  try {
    return { code: 0, ...(await promisify(execFile)(suite.node, [suite.program, ...args], options)) }
  } catch (error) {
    const { code = 1, stdout = '', stderr = '' } = error as Partial<Ended>
    return { code, stdout, stderr }
  }
}
