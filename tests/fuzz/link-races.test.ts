import { spawn } from 'node:child_process'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { Envelope, JsonObject } from 'thinharness'
import { fileTools, jsonlSearch } from 'thinharness/tools'
import { call, folderWith, textOf } from '../toolbox/support.js'
import { SECRET } from './support.js'
import { times, timeLimit } from '../support/length.js'

/** Swaps a folder, and a file, for links to those outside and back, as fast as it can, until it is killed. */
const SWAPPER = `
const { renameSync, symlinkSync, unlinkSync } = require('node:fs')
const [folder, outside, pause] = process.argv.slice(1)
const rest = () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, Number(pause))
process.stdout.write('ready')
for (;;) {
  for (const [inside, target] of [[folder, outside], [folder + '/x.txt', outside + '/x.txt']]) {
    renameSync(inside, inside + '.real')
    symlinkSync(target, inside)
    rest()
    unlinkSync(inside)
    renameSync(inside + '.real', inside)
    rest()
  }
}`

const FILES = ['x.txt', 'rows.jsonl', 'deep/x.txt', 'deep/rows.jsonl']

function filesOf(text: string): Record<string, string> {
  return Object.fromEntries(FILES.map((file) => [file, `{"row":"${text}"}\n`.repeat(3)]))
}

async function swapping(
  pauseMs: number,
): Promise<{ readonly root: string; readonly outside: string; readonly stop: () => void }> {
  const outside = await folderWith({ ...filesOf(SECRET), 'only-outside.txt': SECRET })
  const inside = Object.entries(filesOf('inside')).map(([file, text]) => [`a/${file}`, text] as const)
  const root = await folderWith({ ...Object.fromEntries(inside), 'b/x.txt': 'inside\n' })
  const swapper = spawn(process.execPath, ['-e', SWAPPER, join(root, 'a'), outside, String(pauseMs)])
  const stop = (): void => void swapper.kill('SIGKILL')
  onTestFinished(stop)
  await new Promise((resolve) => swapper.stdout.once('data', resolve))
  return { root, outside, stop }
}

/** What is done in a round: reading, writing, and each way to look through folders. */
function callsOf(round: number): readonly [string, JsonObject][] {
  const edits = [
    { path: 'a/deep/x.txt', old_string: 'inside', new_string: `inside${'!'.repeat(round % 3)}`, replace_all: true },
  ]
  return [
    ['read', { path: 'a/x.txt' }],
    ['read', { path: 'a/deep/rows.jsonl' }],
    ['write', { path: 'a/x.txt', content: '{"row":"inside"}\n' }],
    ['write', { path: `a/deep/new-${round % 20}.txt`, content: 'inside' }],
    ['edit', { edits }],
    ['list', { path: 'a', recursive: true }],
    ['list', { recursive: true }],
    ['glob', { pattern: '**/*outside*' }],
    ['glob', { pattern: 'a/**' }],
    ['search', { query: 'row', context_lines: 1 }],
    ['search', { query: '^', path: 'a', max_matches_per_file: 1 }],
    ['jsonl_search', {}],
    ['jsonl_search', { path: 'a/deep', where: [{ field: 'row', op: 'exists' }] }],
    ['jsonl_search', { path: '**/*.jsonl', count_by: 'row' }],
  ]
}

test.skipIf(process.platform !== 'linux').each([
  ['ripgrep', undefined, 0],
  ['ripgrep, links that stay a while', undefined, 3],
  ['the built-in engine', false, 0],
  ['the built-in engine, links that stay a while', false, 3],
] as const)(
  'nothing outside is read or changed while another process swaps folders and files for links: %s',
  async (_, ripgrep, pauseMs) => {
    const { root, outside, stop } = await swapping(pauseMs)
    const options = { root, ...(ripgrep === false && { ripgrep }) }
    const tools = new Map([...fileTools(options), jsonlSearch(options)].map((tool) => [tool.name, tool]))
    const ended = { ok: 0, failed: 0 }
    // A call that succeeds and one that fails must both happen, or nothing was tried: a slow machine needs more rounds.
    const triedBoth = (): boolean => Math.min(ended.ok, ended.failed) > 5
    for (let round = 0; round < times(8, 600) || (!triedBoth() && round < 600); round++) {
      for (const [name, args] of callsOf(round)) {
        const envelope: Envelope = await call(tools.get(name)!, args)
        ended[envelope.ok ? 'ok' : 'failed']++
        const told = JSON.stringify(envelope)
        expect({ name, args, told: told.includes(SECRET) || told.includes('only-outside') ? told : '' }).toEqual({
          name,
          args,
          told: '',
        })
      }
    }
    stop()
    expect((await readdir(outside, { recursive: true })).sort()).toEqual([...FILES, 'deep', 'only-outside.txt'].sort())
    for (const [file, text] of Object.entries(filesOf(SECRET))) expect(await textOf(outside, file)).toBe(text)
    expect(triedBoth(), JSON.stringify(ended)).toBe(true)
  },
  timeLimit(600_000),
)
