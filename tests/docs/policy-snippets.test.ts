import { Harness } from 'thinharness'
import type { HarnessOptions } from 'thinharness'
import { explain } from 'thinharness/policy'
import { ScriptedModel } from 'thinharness/testing'
import { afterEach, expect, test, vi } from 'vitest'
import { mine } from '../../docs/snippets/policy/grants.js'
import { inTemporaryFolder } from '../support/folder.js'

inTemporaryFolder({ 'notes/a.md': 'A note.\n' })
afterEach(() => void vi.restoreAllMocks())

async function printed(load: () => Promise<unknown>): Promise<readonly string[]> {
  const lines: string[] = []
  vi.spyOn(console, 'log').mockImplementation((...values: unknown[]) => void lines.push(values.join(' ')))
  await load()
  return lines
}

test('docs/policy.md: the decisions that it explains', async () => {
  expect(await printed(() => import('../../docs/snippets/policy/explain.js'))).toEqual([
    'git status --short: allow (rule)',
    'git status; make: no opinion (none)',
    'git status > out: ask (command)',
    'sudo rm -rf build: deny (deny)',
  ])
})

test('docs/policy.md: a grant answers a rule that asks', () => {
  const decide = (command: string) => explain(mine.rules, { tool: 'bash', args: { command } }).decision
  expect(decide('npm test -- --watch')).toBe('allow')
  expect(decide('npm publish')).toBe('ask')
  expect(decide('npm test && git push')).toBe('deny')
})

test('docs/policy.md: the rules of the first example', async () => {
  const scripted = (...commands: string[]) =>
    commands.reduce((model, command) => model.calls('bash', { command }), new ScriptedModel()).always('Done.')
  expect(await printed(() => runWith(scripted('git push', 'git log > out')))).toEqual(['bash '])
  expect(await printed(() => runWith(scripted('git push', 'ls; git push')))).toEqual(['Done.'])
})

/** The program, with a model that says what the test wants. */
async function runWith(model: ScriptedModel): Promise<unknown> {
  vi.resetModules()
  vi.doMock('thinharness', () => ({
    Harness: class extends Harness {
      constructor(options: HarnessOptions) {
        super({ ...options, model })
      }
    },
  }))
  return import('../../docs/snippets/policy/rules.js')
}
