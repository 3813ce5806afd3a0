import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { scriptedProvider } from 'thinharness/testing'
import type { ScriptedProvider } from 'thinharness/testing'
import { temporaryFolder } from '../tests/support/folder.js'

/** In this process, so that their runs are replayed after each test, like all others. `mcp` and `research` start a program that was built. */
const EXAMPLES = {
  approvals: [() => import('../examples/approvals/main.js'), () => import('../examples/approvals/script.js')],
  records: [() => import('../examples/records/main.js'), () => import('../examples/records/script.js')],
} as const

const started = { folder: process.cwd(), argv: [...process.argv] }
let place: string
let provider: ScriptedProvider

beforeEach(async () => {
  place = temporaryFolder()
  provider = await scriptedProvider()
  process.argv.splice(2, Infinity)
  process.chdir(place)
  vi.stubEnv('HOME', place)
  vi.stubEnv('THINHARNESS_MODEL', `local:scripted@${provider.url.chat}`)
  for (const method of ['log', 'error'] as const) vi.spyOn(console, method).mockImplementation(() => undefined)
})
afterEach(async () => {
  process.chdir(started.folder)
  process.argv.splice(2, Infinity, ...started.argv.slice(2))
  vi.unstubAllEnvs()
  vi.restoreAllMocks()
  await provider.close()
})

test.each(Object.keys(EXAMPLES) as (keyof typeof EXAMPLES)[])(
  'the runs of the example `%s` replay to the same results',
  async (name) => {
    const [main, script] = EXAMPLES[name]
    provider.always((await script()).answer)
    if (name === 'records') process.argv.push('--count', '20')
    await main()
    expect(provider.requests).not.toHaveLength(0)
  },
)
