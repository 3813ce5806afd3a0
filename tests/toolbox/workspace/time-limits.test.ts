import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import type { JsonObject, ToolSpec } from 'thinharness'
import type { JsonInput } from '#util/json.js'
import { SearchProgress } from '#toolbox/workspace/search-progress.js'
import { globTool } from '#toolbox/files/glob.js'
import { jsonlSearch } from '#toolbox/jsonl/jsonl-search.js'
import { listTool } from '#toolbox/files/list.js'
import type { FileToolOptions } from '#toolbox/workspace/options.js'
import { searchTool } from '#toolbox/search/search.js'
import { contextOf } from '../../adapters/mcp/support.js'
import { call, folderWith, workspaceIn } from '../support.js'
import { temporaryFolder } from '../../support/folder.js'
import { isAlive } from '../../support/process.js'

const LOOKS: readonly [string, (options: FileToolOptions) => ToolSpec, JsonObject][] = [
  ['glob', globTool, { pattern: '**/*.jsonl' }],
  ['list', listTool, { recursive: true }],
  ['search', (options) => searchTool({ ...options, ripgrep: false }), { query: 'a' }],
  ['jsonl_search', jsonlSearch, {}],
]

/** Made once: it is only looked at. */
const many = temporaryFolder()

beforeAll(async () => {
  for (let folder = 0; folder < 5; folder++) {
    await mkdir(join(many, String(folder)))
    const paths = Array.from({ length: 300 }, (_, index) => join(many, String(folder), `${index}.jsonl`))
    await Promise.all(paths.map((path) => writeFile(path, '{"a":1}\n')))
  }
})

describe('a tool that walks folders has one time limit, and stops when it is aborted', () => {
  test.each(LOOKS)(
    'FT-28 a call that takes too long is a failure that names the time limit: `%s`',
    async (name, make, args) => {
      const { ok, content, metadata } = await call(make({ root: many, searchTimeoutMs: 1 }), args)
      expect({ ok, type: metadata['error_type'], timeout: metadata['timeout'] }).toEqual({
        ok: false,
        type: 'Timeout',
        timeout: 0.001,
      })
      expect(content).toMatch(/ timed out after 0\.001s: narrow the path/)
      expect(content).toContain(name === 'search' ? 'built-in search' : name)
    },
  )

  test.each(LOOKS)('an abort ends `%s` while it runs', async (_, make, args) => {
    const controller = new AbortController()
    const looking = make({ root: many }).call(args, contextOf({ signal: controller.signal }))
    setImmediate(() => controller.abort(new Error('no longer wanted')))
    await expect(looking).rejects.toThrow('no longer wanted')
  })
})

describe.skipIf(process.platform === 'win32')('the process of ripgrep', () => {
  async function started(options: FileToolOptions = {}) {
    const root = await folderWith({ 'a.txt': 'needle\n' })
    const [program, note] = [join(dirname(root), 'rg'), join(dirname(root), 'pid')]
    await writeFile(program, `#!/bin/sh\necho $$ > '${note}.new'; mv '${note}.new' '${note}'; exec sleep 60\n`)
    await chmod(program, 0o755)
    const controller = new AbortController()
    const search = searchTool({ root, ripgrep: program, ...options })
    const ended = search.call({ query: 'needle' }, contextOf({ signal: controller.signal })).catch(String)
    const pid = Number(await vi.waitFor(() => readFile(note, 'utf8'), { timeout: 10_000 }))
    expect(isAlive(pid)).toBe(true)
    return { controller, ended, pid }
  }

  test('it is killed when the call is aborted', async () => {
    const { controller, ended, pid } = await started()
    controller.abort(new Error('no longer wanted'))
    expect(await ended).toBe('Error: no longer wanted')
    expect(isAlive(pid)).toBe(false)
  })

  test('it is killed at the time limit', async () => {
    const { ended, pid } = await started({ searchTimeoutMs: 3_000 })
    expect(await ended).toMatchObject({ kind: 'failed', errorType: 'Timeout' })
    expect(isAlive(pid)).toBe(false)
  })
})

test('a long search reports its progress, first after a while and then at intervals', async () => {
  const root = await folderWith()
  const updates: JsonInput[] = []
  vi.useFakeTimers({ toFake: ['Date'] })
  try {
    const progress = new SearchProgress({
      workspace: workspaceIn(root),
      context: contextOf({ progress: (update) => void updates.push(update) }),
    })
    for (let index = 1; index <= 50; index++) {
      vi.advanceTimersByTime(10)
      progress.add(join(root, 'docs', `${index}\n.md`))
    }
  } finally {
    vi.useRealTimers()
  }
  expect(updates).toEqual([
    { kind: 'found', count: 20, latest: 'docs/20\\u000a.md' },
    { kind: 'found', count: 40, latest: 'docs/40\\u000a.md' },
  ])
})
