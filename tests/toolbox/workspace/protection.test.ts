import { readFileSync } from 'node:fs'
import { mkdir, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { evidenceCheck } from '#toolbox/evidence-check.js'
import { fileTools, jsonlSearch, loadSkills, parallelLlm, PROTECTED_FILES } from 'thinharness/tools'
import type { FileToolOptions } from 'thinharness/tools'
import type { Envelope } from '#core/tools/boundary/envelope.js'
import { findRipgrep } from '#toolbox/search/ripgrep.js'
import type { JsonObject } from '#util/json.js'
import { Protection } from '#toolbox/workspace/protection.js'
import { call, folderWith, textOf } from '../support.js'

const SECRETS = [
  ...['.env', '.env.local', 'app/.env.production', 'prod.env', '.envrc', 'server.pem', 'tls/server.key', 'id_rsa'],
  ...[
    '.ssh/id_ed25519',
    '.ssh/config',
    '.netrc',
    '.npmrc',
    'app/.npmrc',
    '.pypirc',
    '.aws/credentials',
    '.kube/config',
  ],
  ...['.docker/config.json', 'home/.docker/config.json', '.git-credentials', '.config/gcloud/x.db', 'release.p12'],
  ...['.cargo/credentials.toml', '.pgpass', 'terraform.tfstate', 'service-account-prod.json', '.gnupg/secring.gpg'],
]
const PROGRAMS = [
  ...[
    '.git/config',
    '.git/hooks/pre-commit',
    'module/.git',
    '.gitconfig',
    '.bashrc',
    '.zshrc',
    '.profile',
    '.mcp.json',
  ],
  ...['.vscode/tasks.json', '.idea/workspace.xml', '.husky/pre-commit', '.cursor/mcp.json', '.claude/settings.json'],
  ...['app.code-workspace', '.config/fish/config.fish', '.devcontainer/devcontainer.json', '.emacs.d/init.el'],
]
const OPEN = [
  ...['.env.example', '.env.sample', 'app/.env.template', 'env.ts', 'environment.md', 'id_rsa.pub', 'keys.md'],
  ...['.gitignore', '.github/workflows/ci.yml', '.docker/Dockerfile', 'monkey.ts', 'config.json', 'src/.eslintrc'],
]

const ENGINES: readonly [string, string | false][] = [
  ['ripgrep', (await findRipgrep()) ?? false],
  ['the built-in engine', false],
]

async function callFile(
  root: string,
  name: string,
  args: JsonObject,
  options: FileToolOptions = {},
): Promise<Envelope> {
  const spec = fileTools({ root, ...options }).find((tool) => tool.name === name)
  if (spec === undefined) throw new Error(`There is no \`${name}\`.`)
  return call(spec, args)
}

describe('protected files', () => {
  test.each(SECRETS)('a file that contains secrets is neither read nor written: %s', async (path) => {
    const root = await folderWith({ [path]: 'TOKEN=s3cret\n' })
    const write = { path, content: 'mine' }
    const edit = { edits: [{ path, old_string: 'TOKEN', new_string: 'X' }] }
    for (const [name, args] of Object.entries({ read: { path }, write, edit })) {
      const result = await callFile(root, name, args)
      expect([result.ok, result.content]).toEqual([false, expect.stringContaining('protected against')])
      expect(JSON.stringify(result)).not.toContain('s3cret')
    }
    expect(await textOf(root, path)).toBe('TOKEN=s3cret\n')
  })

  test.each(PROGRAMS)('a file that runs programs later is read, and not written: %s', async (path) => {
    const root = await folderWith({ [path]: 'old\n' })
    expect(await callFile(root, 'read', { path })).toMatchObject({ ok: true })
    for (const args of [
      { path, content: 'new' },
      { path, content: 'new', append: true },
    ]) {
      expect(await callFile(root, 'write', args)).toMatchObject({
        ok: false,
        metadata: { error_type: 'PathValidationError' },
      })
    }
    const edit = { edits: [{ path, old_string: 'old', new_string: 'new' }] }
    expect(await callFile(root, 'edit', edit)).toMatchObject({
      ok: false,
      metadata: { error_type: 'PathValidationError' },
    })
    expect(await textOf(root, path)).toBe('old\n')
  })

  test('a protected file is not created either, nor a folder for it', async () => {
    const root = await folderWith()
    expect(await callFile(root, 'write', { path: '.git/hooks/post-commit', content: 'x' })).toMatchObject({ ok: false })
    expect(await callFile(root, 'list', {})).toMatchObject({ content: 'no files' })
  })

  test.each(OPEN)('other files are open: %s', async (path) => {
    const root = await folderWith({ [path]: 'old\n' })
    expect(await callFile(root, 'read', { path })).toMatchObject({ ok: true })
    expect(await callFile(root, 'write', { path, content: 'new' })).toMatchObject({ ok: true })
  })

  test('the message names the rule and the option that opens the file', async () => {
    const root = await folderWith({ '.env': 'x' })
    expect(await callFile(root, 'read', { path: '.env' })).toMatchObject({
      metadata: { error_type: 'PathValidationError' },
      content:
        'path is protected against reading by the rule `.env*`: .env. Only the host can open it, with the option `protect`.',
    })
  })

  test('links, `..`, absolute paths and the case of names make no difference', async () => {
    const root = await folderWith({ 'a/.env': 's3cret', '.ENV.Local': 's3cret', 'a/Server.PEM': 's3cret' })
    await symlink('.env', join(root, 'a', 'notes.txt'))
    await symlink('a', join(root, 'b'))
    await symlink(join('..', 'around.txt'), join(root, '.netrc'))
    const paths = [
      'a/notes.txt',
      'a/../a/.env',
      'b/.env',
      join(root, 'a', '.env'),
      '.ENV.Local',
      'a/Server.PEM',
      './/a//.env',
    ]
    for (const path of [...paths, '.netrc']) {
      expect([path, await callFile(root, 'read', { path })]).toMatchObject([path, { ok: false }])
    }
  })

  test('a link with a protected name is protected too', async () => {
    const root = await folderWith({ 'shared.txt': 's3cret' })
    await symlink('shared.txt', join(root, '.env'))
    expect(await callFile(root, 'read', { path: '.env' })).toMatchObject({ ok: false })
    expect(await callFile(root, 'write', { path: '.env', content: 'x' })).toMatchObject({ ok: false })
  })

  test('names that a file system takes for a protected one are protected', () => {
    const ruleOf = (name: string) => new Protection(PROTECTED_FILES.write).ruleOf([name, 'config'])
    expect(['.git', '.GIT', '.g\u200Cit', '.ＧＩＴ', '.vſcode'].map(ruleOf)).toEqual([
      ...['.git', '.git', '.git', '.git', '.vscode'],
    ])
  })

  test.each(ENGINES)('no search shows the content of a protected file: %s', async (_name, ripgrep) => {
    const row = '{"token":"s3cret"}\n'
    const root = await folderWith({
      ...{ 'a.txt': 's3cret', 'tls/server.key': 's3cret', 'TLS.PEM': 's3cret', '.ssh/config': 's3cret' },
      ...{ '.env': 's3cret', '.env.example': 's3cret', 'rows.jsonl': row, '.aws/rows.jsonl': row },
    })
    const search = (args: JsonObject) => callFile(root, 'search', { query: 's3cret', ...args }, { ripgrep })
    const found = await search({})
    expect(found.content).toContain('a.txt')
    expect(found.content).not.toMatch(/server\.key|TLS\.PEM|\.env/)
    for (const path of ['.env', '.ssh', '.ssh/config', 'tls/server.key']) {
      expect([path, await search({ path })]).toMatchObject([path, { ok: false }])
    }
    expect((await search({ path: 'tls' })).content).not.toContain('server.key:')
    expect((await search({ path: '.env.example' })).content).toContain('matches: 1 shown')
    const rows = jsonlSearch({ root })
    expect((await call(rows, { path: '**/*.jsonl' })).content).not.toContain('.aws')
    expect(await call(rows, { path: '.aws' })).toMatchObject({ ok: false })
  })

  test('names of protected files are listed', async () => {
    const root = await folderWith({ '.env': 'x', 'tls/server.key': 'x', '.ssh/id_rsa': 'x' })
    expect((await callFile(root, 'list', { glob: '.*' })).content).toBe('dir  .ssh\nfile .env')
    expect((await callFile(root, 'list', { path: '.ssh' })).content).toBe('file .ssh/id_rsa')
    expect((await callFile(root, 'glob', { pattern: '**/*.key' })).content).toBe('tls/server.key')
  })

  test('a skill, a check of evidence and a prompt file do not open them', async () => {
    const skill = '---\nname: deploy\ndescription: Deploys.\n---\n'
    const root = await folderWith({ 'deploy/SKILL.md': skill, 'deploy/.env': 's3cret', '.env': 's3cret' })
    const { tools } = await loadSkills({ dirs: [root] })
    const [read] = tools
    if (read === undefined) throw new Error('There is no skill.')
    expect(await call(read, { skill_name: 'deploy', path: '.env' })).toMatchObject({ ok: false })

    const check = evidenceCheck({ root, signal: new AbortController().signal, transcript: [] })
    expect(await check({ file: '.env', from_line: 1, quote: 's3cret' })).toContain('is protected')

    const prompts = { source: { kind: 'file', path: '.env' } }
    expect((await call(parallelLlm({ root }), prompts)).content).toContain('is protected')
  })
})

describe('the option `protect`', () => {
  test('a list replaces the default of its kind, and the other keeps its default', async () => {
    const root = await folderWith({ '.env': 'x', 'private/a.md': 'x', 'a.md': 'x' })
    const options: FileToolOptions = { protect: { read: ['private', '!private/x'] } }
    expect(await callFile(root, 'read', { path: '.env' }, options)).toMatchObject({ ok: true })
    expect(await callFile(root, 'read', { path: 'private/a.md' }, options)).toMatchObject({ ok: false })
    expect(await callFile(root, 'write', { path: 'private/a.md', content: '' }, options)).toMatchObject({ ok: true })
    expect(await callFile(root, 'write', { path: '.env', content: '' }, options)).toMatchObject({ ok: false })
  })

  test('the default lists can be extended, with exceptions', async () => {
    const root = await folderWith({ '.env': 'x', '.env.ci': 'x', 'a.md': 'x', 'sub/a.md': 'x' })
    const options: FileToolOptions = { protect: { read: [...PROTECTED_FILES.read, '!.env.ci', '/a.md'] } }
    const opens = async (path: string) => (await callFile(root, 'read', { path }, options)).ok
    expect([await opens('.env'), await opens('.env.ci'), await opens('a.md'), await opens('sub/a.md')]).toEqual([
      ...[false, true, false, true],
    ])
  })

  test('`false` protects nothing', async () => {
    const root = await folderWith({ '.env': 'x', '.git/config': 'x' })
    expect(await callFile(root, 'read', { path: '.env' }, { protect: false })).toMatchObject({ ok: true })
    const write = { path: '.git/config', content: 'y' }
    expect(await callFile(root, 'write', write, { protect: false })).toMatchObject({ ok: true })
    expect(readFileSync(join(root, '.git', 'config'), 'utf8')).toBe('y')
  })

  test.each<[string, unknown, string]>([
    ['no lists', true, 'Expected `protect` of the file tools'],
    ['an unknown list', { reads: [] }, 'Unknown option of the file tools: `protect.reads`. Did you mean `read`?'],
    ['no globs', { read: '.env' }, 'Expected `protect.read` of the file tools to be a list of globs'],
    ['an escaping glob', { write: ['../x'] }, 'got `../x`: glob must not contain `..`'],
  ])('it is checked: %s', (_name, protect, message) => {
    expect(() => fileTools({ protect: protect as FileToolOptions['protect'] })).toThrow(message)
  })

  test('an explicit read path does not open a protected file', async () => {
    const root = await folderWith({ '.env': 's3cret', 'keys/a.pem': 's3cret', 'keys/a.md': 'x' })
    await mkdir(join(root, 'empty'))
    const options: FileToolOptions = { readPaths: ['.env', 'keys'] }
    expect(await callFile(root, 'read', { path: '.env' }, options)).toMatchObject({ ok: false })
    expect((await callFile(root, 'search', { query: 's3cret' }, options)).content).not.toContain('.env')
  })
})
