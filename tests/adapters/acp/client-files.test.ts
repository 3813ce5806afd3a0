import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { RequestError } from '@agentclientprotocol/sdk'
import type { ClientApp, ClientCapabilities } from '@agentclientprotocol/sdk'
import { expect, test } from 'vitest'
import { ScriptedModel } from 'thinharness/testing'
import { subagent } from 'thinharness/tools'
import { harnessOf } from '../../harness/support.js'
import { sessionsOf, temporaryFolder } from '../../session/support.js'
import { editorOf } from './support.js'
import type { Editor } from './support.js'

const BOTH = { fs: { readTextFile: true, writeTextFile: true } }

/** The files of an editor: what it has in its windows, by path. */
class Windows {
  readonly texts = new Map<string, string>()
  /** The paths that it was asked for, such as `read /a/b`. */
  readonly asked: string[] = []
  /** Called before an answer. */
  before: (asked: string) => void = () => undefined

  readonly handle = (app: ClientApp): ClientApp =>
    app
      .onRequest('fs/read_text_file', ({ params: { path } }) => {
        this.#ask(`read ${path}`)
        const content = this.texts.get(path)
        if (content === undefined) throw RequestError.resourceNotFound(path)
        return { content }
      })
      .onRequest('fs/write_text_file', ({ params: { path, content } }) => {
        this.#ask(`write ${path}`)
        this.texts.set(path, content)
        return {}
      })

  #ask(asked: string): void {
    this.asked.push(asked)
    this.before(asked)
  }
}

interface Setup {
  readonly root: string
  readonly model: ScriptedModel
  readonly windows?: Windows
  readonly capabilities?: ClientCapabilities
  readonly useClientFiles?: boolean
}

async function played({
  root,
  model,
  windows = new Windows(),
  capabilities = BOTH,
  useClientFiles = true,
}: Setup): Promise<Editor> {
  const harness = harnessOf({
    model,
    builtinTools: ['read', 'write', 'edit'],
    tools: [subagent()],
  })
  const editor = await editorOf({
    ...{ sessions: sessionsOf({ harness }), capabilities, useClientFiles },
    handle: windows.handle,
  })
  const sessionId = await editor.begin({ cwd: root })
  expect(await editor.prompt(sessionId, 'Go on.')).toEqual({ stopReason: 'end_turn' })
  return editor
}

/** The contents of the results that the model has heard, without pictures. */
function heard(model: ScriptedModel): readonly string[] {
  const entries = model.requests.flatMap((request) => request.entries)
  return entries.flatMap((entry) => (entry.role === 'tool' ? [contentOf(entry.content)] : []))
}

function contentOf(result: string | readonly { readonly type: string; readonly text?: string }[]): string {
  const text = typeof result === 'string' ? result : (result.find(({ type }) => type === 'text')?.text ?? '')
  return (JSON.parse(text) as { readonly content: string }).content
}

function rootWith(files: Readonly<Record<string, string>>): string {
  const root = temporaryFolder()
  for (const [name, text] of Object.entries(files)) writeFileSync(join(root, name), text)
  return root
}

test('AC-24 the file tools read, edit, write and append in the editor, and the disk keeps what is saved', async () => {
  const root = rootWith({ 'a.ts': 'let a = 1\n' })
  const windows = new Windows()
  windows.texts.set(join(root, 'a.ts'), 'let a = 2\n')
  const model = new ScriptedModel()
    .calls('read', { path: 'a.ts' })
    .calls('edit', { edits: [{ path: 'a.ts', old_string: '2', new_string: '3' }] })
    .calls('write', { path: 'a.ts', content: 'let b = 4\n', append: true })
    .calls('write', { path: 'deep/c.ts', content: 'let c = 5\n' })
    .calls('read', { path: 'a.ts', offset: 2, limit: 1 })
    .says('Done.')
  await played({ root, model, windows })
  expect(heard(model)).toEqual([
    'let a = 2',
    '1. ok a.ts: replaced 1 occurrence(s)',
    'appended 10 bytes to a.ts',
    'wrote 10 bytes to deep/c.ts',
    expect.stringContaining('let b = 4'),
  ])
  expect(Object.fromEntries(windows.texts)).toEqual({
    [join(root, 'a.ts')]: 'let a = 3\nlet b = 4\n',
    [join(root, 'deep/c.ts')]: 'let c = 5\n',
  })
  expect(readFileSync(join(root, 'a.ts'), 'utf8')).toBe('let a = 1\n')
  expect(existsSync(join(root, 'deep/c.ts'))).toBe(false)
})

test.each([
  ['the host has not said so', { useClientFiles: false }],
  ['the editor has not said that it can', { capabilities: {} }],
])('AC-24 the disk is used when %s', async (_when, given) => {
  const root = rootWith({ 'a.ts': 'saved' })
  const windows = new Windows()
  windows.texts.set(join(root, 'a.ts'), 'not saved')
  const model = new ScriptedModel()
    .calls('read', { path: 'a.ts' })
    .calls('write', { path: 'a.ts', content: 'new' })
    .says('Done.')
  await played({ root, model, windows, ...given })
  expect(heard(model)[0]).toBe('saved')
  expect(readFileSync(join(root, 'a.ts'), 'utf8')).toBe('new')
  expect(windows.asked).toEqual([])
})

test('AC-24 an editor that only reads, or only writes, is asked for nothing else', async () => {
  const calls = (): ScriptedModel =>
    new ScriptedModel().calls('read', { path: 'a.ts' }).calls('write', { path: 'b.ts', content: 'new' }).says('Done.')
  const root = rootWith({ 'a.ts': 'saved' })
  const [reads, writes] = [new Windows(), new Windows()]
  const [reader, writer] = [calls(), calls()]
  for (const windows of [reads, writes]) windows.texts.set(join(root, 'a.ts'), 'not saved')
  await played({ root, model: reader, windows: reads, capabilities: { fs: { readTextFile: true } } })
  expect([heard(reader)[0], reads.asked]).toEqual(['not saved', [`read ${join(root, 'a.ts')}`]])
  expect(readFileSync(join(root, 'b.ts'), 'utf8')).toBe('new')
  const other = rootWith({ 'a.ts': 'saved' })
  await played({ root: other, model: writer, windows: writes, capabilities: { fs: { writeTextFile: true } } })
  expect([heard(writer)[0], writes.asked]).toEqual(['saved', [`write ${join(other, 'b.ts')}`]])
  expect(existsSync(join(other, 'b.ts'))).toBe(false)
})

test('AC-24 a path outside the root, a protected file and a link that leads out never reach the editor', async () => {
  const [root, outside] = [rootWith({ '.env': 'KEY=1' }), rootWith({ secret: 'secret' })]
  symlinkSync(join(outside, 'secret'), join(root, 'link'))
  const windows = new Windows()
  for (const path of [join(outside, 'secret'), join(root, 'link'), join(root, '.env')])
    windows.texts.set(path, 'secret')
  const model = new ScriptedModel()
  for (const path of ['../secret', join(outside, 'secret'), 'link', '.env']) {
    model.calls('read', { path })
    model.calls('write', { path: path === '.env' ? '.git/hooks/post-commit' : path, content: 'x' })
  }
  model.says('Nothing.')
  await played({ root, model, windows })
  expect(windows.asked).toEqual([])
  expect(heard(model)).toHaveLength(8)
  expect(heard(model).every((content) => content !== 'secret' && content !== 'KEY=1')).toBe(true)
  expect(readFileSync(join(outside, 'secret'), 'utf8')).toBe('secret')
})

test('AC-24 the editor is asked for its own name of the folder, and for links by the file that they lead to', async () => {
  const real = rootWith({ 'a.ts': 'saved' })
  symlinkSync('a.ts', join(real, 'link.ts'))
  const named = join(temporaryFolder(), 'project')
  symlinkSync(real, named)
  const windows = new Windows()
  windows.texts.set(join(named, 'a.ts'), 'not saved')
  const model = new ScriptedModel().calls('read', { path: 'link.ts' }).says('Done.')
  await played({ root: named, model, windows })
  expect([heard(model), windows.asked]).toEqual([['not saved'], [`read ${join(named, 'a.ts')}`]])
})

test('AC-24 a file that was never saved, one that the editor does not have, a picture and a folder', async () => {
  const root = rootWith({ 'saved.ts': 'saved' })
  mkdirSync(join(root, 'folder'))
  const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
  writeFileSync(join(root, 'a.png'), Buffer.from(pixel, 'base64'))
  const windows = new Windows()
  windows.texts.set(join(root, 'new.ts'), 'never saved')
  const model = new ScriptedModel()
    .calls('read', { path: 'new.ts' })
    .calls('edit', { edits: [{ path: 'new.ts', old_string: 'never', new_string: 'not yet' }] })
    .calls('read', { path: 'saved.ts' })
    .calls('read', { path: 'missing.ts' })
    .calls('read', { path: 'a.png' })
    .calls('read', { path: 'folder' })
    .calls('edit', { edits: [{ path: 'missing.ts', old_string: 'a', new_string: 'b' }] })
    .says('Done.')
  await played({ root, model, windows })
  const [created, edited, saved, missing, picture, folder, unedited] = heard(model)
  expect([created, saved]).toEqual(['never saved', 'saved'])
  expect(edited).toBe('1. ok new.ts: replaced 1 occurrence(s)')
  expect(windows.texts.get(join(root, 'new.ts'))).toBe('not yet saved')
  expect(missing).toContain('file not found: missing.ts')
  expect(picture).toContain('image/png, 1 x 1 pixels')
  expect(folder).toContain('path is a directory: folder')
  expect(unedited).toContain('file not found: missing.ts')
})

test('AC-24 what a person types after the model has read is not overwritten', async () => {
  const root = rootWith({ 'a.ts': 'one\n', 'b.ts': 'one\n' })
  const windows = new Windows()
  for (const name of ['a.ts', 'b.ts']) windows.texts.set(join(root, name), 'one\n')
  let reads = 0
  windows.before = (asked) => {
    // The person types behind the first read of the first file, and in the middle of the edit of the second.
    if (asked === `read ${join(root, 'a.ts')}`) queueMicrotask(() => windows.texts.set(join(root, 'a.ts'), 'typed\n'))
    if (asked === `read ${join(root, 'b.ts')}` && (reads += 1) === 3)
      windows.texts.set(join(root, 'b.ts'), 'one, typed\n')
  }
  const model = new ScriptedModel()
    .calls('read', { path: 'a.ts' })
    .calls('read', { path: 'b.ts' })
    .calls('write', { path: 'a.ts', content: 'two\n' })
    .calls('edit', { edits: [{ path: 'b.ts', old_string: 'one', new_string: 'two' }] })
    .says('Done.')
  await played({ root, model, windows })
  expect(heard(model)[2]).toContain('a.ts has changed since you read it: read it again')
  expect(heard(model)[3]).toContain('b.ts was changed meanwhile by another program: read it again')
  expect([...windows.texts.values()]).toEqual(['typed\n', 'one, typed\n'])
})

test('AC-24 a refusal of the editor is a failed result, and the disk does not answer in its place', async () => {
  const root = rootWith({ 'a.ts': 'saved' })
  const windows = new Windows()
  windows.before = () => {
    throw new RequestError(-32603, 'The project is closed.')
  }
  const model = new ScriptedModel()
    .calls('read', { path: 'a.ts' })
    .calls('write', { path: 'b.ts', content: 'x' })
    .says('Done.')
  await played({ root, model, windows })
  const [read, written] = heard(model)
  expect(read).toContain('the editor could not read a.ts: The project is closed.')
  expect(written).toContain('the editor could not')
  expect(`${read ?? ''}${written ?? ''}`).not.toContain('saved')
  expect(existsSync(join(root, 'b.ts'))).toBe(false)
})

test('AC-24 child runs use the editor too', async () => {
  const root = rootWith({ 'a.ts': 'saved' })
  const windows = new Windows()
  windows.texts.set(join(root, 'a.ts'), 'not saved')
  const model = new ScriptedModel()
    .calls('subagent', { task: 'Read.' })
    .calls('read', { path: 'a.ts' })
    .says('It is read.')
    .says('Done.')
  await played({ root, model, windows })
  expect(windows.asked).toEqual([`read ${join(root, 'a.ts')}`])
})
