import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')

/** The first cell of each row of the tables below a heading. */
function rowsOf(page: string, heading: string): readonly string[] {
  const section = read(page).split(`\n## ${heading}\n`)[1]?.split('\n## ')[0] ?? ''
  return [...section.matchAll(/^\| `(\w+)`/gm)].map(([, name = '']) => name)
}

/** The members of an interface itself. The compiler keeps the option shapes equal to these. */
function membersOf(file: string, name: string): readonly string[] {
  const [, body = ''] = new RegExp(`^export interface ${name}\\b.*?\\{\\n(.*?)^\\}`, 'ms').exec(read(file)) ?? []
  return [...body.matchAll(/^ {2}readonly (\w+)\??:/gm)].map(([, member = '']) => member)
}

test('docs/errors.md has a row for each code of `HarnessError`, and no other', () => {
  const [, union = ''] = /export type HarnessErrorCode =\n(.*?)\n\n/s.exec(read('src/contracts/errors.ts')) ?? []
  const codes = [...union.matchAll(/'(\w+)'/g)].map(([, code = '']) => code)
  expect(codes).toContain('provider_error')
  expect(rowsOf('docs/errors.md', 'Codes')).toEqual(codes)
})

test('docs/errors.md has a row for each code of `SessionError`, and no other', () => {
  const [, union = ''] = /const SESSION_CODES = \[\n(.*?)\n\]/s.exec(read('src/session/errors.ts')) ?? []
  const codes = [...union.matchAll(/'(\w+)'/g)].map(([, code = '']) => code)
  expect(codes).toContain('thread_owned')
  expect(rowsOf('docs/errors.md', 'Codes of conversations')).toEqual(codes)
})

test('docs/ui-messages.md has a row for each part that a page of the AI SDK has to show, and no other', () => {
  const folder = new URL('../../src/adapters/ui/ai-sdk/', import.meta.url)
  const source = readdirSync(folder).map((name) => readFileSync(new URL(name, folder), 'utf8'))
  const data = [...source.join('\n').matchAll(/'(data-[a-z]+)'/g)].map(([, name = '']) => name)
  const [, union = ''] =
    /export type UiMessagePart =\n(.*?)\n\n/s.exec(read('src/adapters/ui/ai-sdk/message-fold.ts')) ?? []
  const [, calls = ''] =
    /interface UiToolPart \{\n(.*?)\n {2}readonly toolName/s.exec(read('src/adapters/ui/ai-sdk/message-fold.ts')) ?? []
  const others = [...`${union}${calls}`.matchAll(/type: [^\n;]*/g)].flatMap(([line]) =>
    [...line.matchAll(/['`]([a-z-]+)(?:\$\{string\})?['`]/g)].map(([, name = '']) =>
      name.replace(/^tool-$/, 'tool-<name>'),
    ),
  )
  const [table = ''] = read('docs/ui-messages.md').split('\n## Parts\n')[1]?.split('\n## ') ?? []
  const rows = [...table.matchAll(/^\| (`[^|]*)\|/gm)].flatMap(([, cell = '']) =>
    [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name),
  )
  const listed = rows.filter((name) => name !== 'onData')
  expect(listed.toSorted()).toEqual([...new Set([...data, ...others.filter((name) => name !== 'data-')])].toSorted())
})

test('docs/editors.md has a row for each option of `serveAcp`', () => {
  expect([...rowsOf('docs/editors.md', 'Options')].sort()).toEqual(
    [...membersOf('src/adapters/acp/options.ts', 'AcpOptions')].sort(),
  )
})

const OPTIONS = 'src/harness/options.ts'
const LIMITS = 'src/contracts/limits.ts'

test.each<[string, readonly (readonly [string, string])[]]>([
  [
    'Harness',
    [
      [OPTIONS, 'HarnessOptions'],
      [LIMITS, 'BudgetOptions'],
      ['src/run/provenance/options.ts', 'FlowOptions'],
    ],
  ],
  [
    'Runs',
    [
      [OPTIONS, 'RunOptions'],
      [LIMITS, 'BudgetOptions'],
    ],
  ],
  ['Continued runs', [[OPTIONS, 'ResumeOptions']]],
  ['Forks', [['src/run/replay/fork.ts', 'ForkEffects']]],
  ['Replay', [[OPTIONS, 'ReplayOptions']]],
  ['Batches', [['src/harness/map-rows.ts', 'MapOptions']]],
  ['Closing', [[OPTIONS, 'CloseOptions']]],
  ['Limits', [[LIMITS, 'Limits']]],
  ['Loop detection', [[LIMITS, 'StallOptions']]],
  ['Settings', [['src/core/model-session.ts', 'ModelSettings']]],
])('docs/options.md has a row for each option: %s', (heading, interfaces) => {
  const members = interfaces.flatMap(([file, name]) => membersOf(file, name))
  expect(members).not.toEqual([])
  const inherited = heading === 'Replay' ? ['tools', 'mcpServers', 'instructions', 'root', 'use'] : []
  expect([...rowsOf('docs/options.md', heading)].sort()).toEqual([...members, ...inherited].sort())
})
