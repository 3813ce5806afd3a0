import { symlink } from 'node:fs/promises'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { findRipgrep } from '#toolbox/search/ripgrep.js'
import { fileTools } from '#toolbox/files/file-tools.js'
import type { FileToolOptions } from '#toolbox/workspace/options.js'
import { rounds, timeLimit } from '../../support/length.js'
import { call, folderWith } from '../support.js'

const engines: FileToolOptions[] = [{ ripgrep: false }, ...((await findRipgrep()) === undefined ? [] : [{}])]

const FILES = {
  '.git/config': 'url = https://ann:needle@example.com/a.git\n',
  '.git/hooks/x.md': 'needle',
  'sub/.git/config': 'needle',
  '.hidden/a.md': 'needle',
  'sub/.secret.md': 'needle',
  'sub/b.md': 'needle in the open',
}

async function answers(root: string, options: FileToolOptions): Promise<string> {
  const calls = [
    ['search', { query: 'needle' }],
    ['search', { query: 'needle', path: 'sub' }],
    ['glob', { pattern: '**/*', include_dirs: true }],
    ['glob', { pattern: '**' }],
    ['glob', { pattern: '*/*.md' }],
    ['list', { recursive: true }],
    ['list', { recursive: true, glob: '*' }],
  ] as const
  const tools = fileTools({ root, ...options })
  const texts = await Promise.all(
    calls.map(async ([name, args]) => {
      const tool = tools.find((each) => each.name === name)
      return tool === undefined ? `no tool ${name}` : (await call(tool, args)).content
    }),
  )
  return texts.join('\n')
}

describe.each(engines)('hidden names, with %j', (options) => {
  test.each(['*\n!*/\n!*.md\n', '*\n!*.*\n', '!*/\n', '!.git\n!.hidden\n!**/.*\n', '!**\n'])(
    'are not shown by an ignore file: %j',
    async (ignore) => {
      for (const file of ['.gitignore', '.ignore', 'sub/.gitignore']) {
        const text = await answers(await folderWith({ ...FILES, [file]: ignore }), options)
        expect(text).not.toMatch(/(?:^|[/ ])\.(?:git\b|hidden|secret)|example\.com/m)
      }
    },
  )

  test('are shown if the pattern spells the dot, except those of git', async () => {
    const root = await folderWith(FILES)
    await symlink('.git', join(root, 'link'))
    const [glob, list] = ['glob', 'list'].map((name) => fileTools({ root }).find((each) => each.name === name))
    if (glob === undefined || list === undefined) throw new Error('missing tools')
    expect((await call(glob, { pattern: '.hidden/*' })).content).toBe('.hidden/a.md')
    expect((await call(glob, { pattern: 'sub/.*' })).content).toBe('sub/.secret.md')
    for (const pattern of ['.git/**', '.git*/**', '**/.git/*', '{.git,x}/**', 'sub/.git/config'])
      expect((await call(glob, { pattern })).content).toBe('no files')
    expect((await call(list, { glob: '.*' })).content).toBe('dir  .hidden')
  })
})

test('no ignore file shows a hidden name', { timeout: timeLimit(60_000) }, async () => {
  const piece = fc.constantFrom('*', '**', '.*', '*.*', '*/', '.git', '.git/', '.hidden', '*.md', 'sub', 'config')
  const rule = fc.tuple(fc.constantFrom('!', '!', ''), fc.array(piece, { minLength: 1, maxLength: 3 }))
  const lines = fc.array(
    rule.map(([sign, pieces]) => sign + pieces.join('/')),
    { minLength: 1, maxLength: 5 },
  )
  await fc.assert(
    fc.asyncProperty(lines, async (rules) => {
      const root = await folderWith({ ...FILES, '.gitignore': rules.join('\n') })
      for (const options of engines)
        expect(await answers(root, options)).not.toMatch(/(?:^|[/ ])\.(?:git\b|hidden|secret)|example\.com/m)
    }),
    rounds(10, 300),
  )
})
