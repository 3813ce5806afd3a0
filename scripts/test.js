// Everything that a change must pass: the checks, then the tests. The last line counts the tests; a check that fails
// counts as one that failed. Arguments are passed on to vitest.
import { spawn } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync } from 'node:fs'
import { runChecks } from './check.js'

const REPORT = '.build/tests.json'

const checks = await runChecks()
const tests = await runTests(process.argv.slice(2))
const failed = checks.failed + tests.failed
console.log(`${tests.passed} passed, ${failed} failed`)
process.exitCode = failed === 0 ? 0 : 1

async function runTests(args) {
  mkdirSync('.build', { recursive: true })
  rmSync(REPORT, { force: true })
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${REPORT}`]
  const vitest = spawn(process.execPath, ['node_modules/vitest/vitest.mjs', 'run', ...reporters, ...args], {
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  const code = await new Promise((resolve) => vitest.on('close', resolve).on('error', () => resolve(1)))
  const { passed, failed, skipped } = counts()
  if (skipped > 0) console.log(`${skipped} tests were skipped: what they need is not on this machine.`)
  // A run that ended badly without a test that failed: an error between the tests, or no test at all.
  return { passed, failed: failed === 0 && code !== 0 ? 1 : failed }
}

/** Of all tests; a file that could not be read as tests counts as one that failed. */
function counts() {
  let report
  try {
    report = JSON.parse(readFileSync(REPORT, 'utf8'))
  } catch {
    return { passed: 0, failed: 0, skipped: 0 }
  }
  const broken = report.testResults.filter(
    ({ status, assertionResults }) => status === 'failed' && assertionResults.every((test) => test.status !== 'failed'),
  )
  return {
    passed: report.numPassedTests,
    failed: report.numFailedTests + broken.length,
    skipped: report.numPendingTests + report.numTodoTests,
  }
}
