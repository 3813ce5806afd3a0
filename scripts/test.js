// `npm test`: the checks, then the tests. The last line counts the tests; checks that fail count as one failed test.
// `npm test -- providers`: only the tests of `tests/providers/`, without the checks. Other arguments go to vitest.
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, rmSync } from 'node:fs'

const REPORT = '.build/tests.json'
const REPORTERS = ['--reporter=default', '--reporter=json', `--outputFile.json=${REPORT}`]

const args = process.argv.slice(2).map((arg) => (existsSync(`tests/${arg}`) ? `tests/${arg}/` : arg))
if (args.length > 0) console.log('Arguments select tests: the checks are skipped.')
const checksHold = args.length > 0 || run('npm', ['run', '--silent', 'check'])

rmSync(REPORT, { force: true })
const testsHold = run(process.execPath, ['node_modules/vitest/vitest.mjs', 'run', ...REPORTERS, ...args])
const { passed, failed, skipped } = counts()
if (skipped > 0)
  console.log(`${skipped} tests were skipped because this machine lacks a program or a key that they need.`)
// Errors outside of tests fail the run without a failed test.
const failures = (testsHold ? 0 : Math.max(1, failed)) + (checksHold ? 0 : 1)
console.log(`${passed} passed, ${failures} failed`)
process.exitCode = failures === 0 ? 0 : 1

function run(command, options) {
  return spawnSync(command, options, { stdio: ['ignore', 'inherit', 'inherit'] }).status === 0
}

function counts() {
  if (!existsSync(REPORT)) return { passed: 0, failed: 0, skipped: 0 }
  const { testResults, ...report } = JSON.parse(readFileSync(REPORT, 'utf8'))
  // A file that could not be loaded has no tests, and counts as one that failed.
  const broken = testResults.filter(
    ({ status, assertionResults }) => status === 'failed' && assertionResults.length === 0,
  )
  return {
    passed: report.numPassedTests,
    failed: report.numFailedTests + broken.length,
    skipped: report.numPendingTests + report.numTodoTests,
  }
}
