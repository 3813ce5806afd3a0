import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { fileTools, PathValidationError } from 'thinharness/tools'
import { call, folderWith } from '../support.js'

function toolNamed(root: string, name: string): ReturnType<typeof fileTools>[number] {
  return fileTools({ root }).find((tool) => tool.name === name)!
}

describe('fileTools', () => {
  test('FT-01 the six file tools come in a fixed order, each with a description and instructions', () => {
    const tools = fileTools()
    expect(tools.map(({ name }) => name)).toEqual(['read', 'write', 'edit', 'search', 'list', 'glob'])
    for (const { description, instructions } of tools) {
      expect(description).toMatch(/^[A-Z].*\.$/)
      expect(instructions).toMatch(/^`/)
    }
  })

  test('PT-01 PT-02 only `write` and `edit` are sequential, and no schema mentions it', () => {
    expect(fileTools().map(({ name, sequential = false }) => [name, sequential])).toEqual([
      ['read', false],
      ['write', true],
      ['edit', true],
      ['search', false],
      ['list', false],
      ['glob', false],
    ])
    expect(JSON.stringify(fileTools().map(({ parameters }) => parameters))).not.toContain('sequential')
  })

  test('FT-20 optional arguments are not required, have no default and are never null; every schema is closed', () => {
    const required = fileTools().map(({ name, parameters }) => [name, parameters['required'] ?? []])
    expect(required).toEqual([
      ['read', ['path']],
      ['write', ['path', 'content']],
      ['edit', ['edits']],
      ['search', ['query']],
      ['list', []],
      ['glob', ['pattern']],
    ])
    for (const { parameters } of fileTools()) {
      expect(parameters).toMatchObject({ type: 'object', additionalProperties: false })
      expect(JSON.stringify(parameters)).not.toMatch(/null|"default"/)
    }
  })

  test('options are checked at once', async () => {
    const root = await folderWith()
    expect(() => fileTools({ root, readPaths: ['../x'] })).toThrow(PathValidationError)
    expect(() => fileTools({ root, ...{ readPath: ['x'] } })).toThrow('Did you mean `readPaths`?')
    fileTools({ root: join(root, 'new') })
    expect(existsSync(join(root, 'new'))).toBe(true)
  })

  test('FT-03 writing, reading a range, editing and listing recursively work together', async () => {
    const root = await folderWith()
    await call(toolNamed(root, 'write'), { path: 'docs/a.txt', content: 'one\ntwo\nthree\n' })
    expect((await call(toolNamed(root, 'read'), { path: 'docs/a.txt', offset: 2, limit: 1 })).content).toBe(
      '[read 1 of 3 lines from docs/a.txt; more lines are available from offset=3]\ntwo',
    )
    await call(toolNamed(root, 'edit'), { edits: [{ path: 'docs/a.txt', old_string: 'two', new_string: '2' }] })
    expect((await call(toolNamed(root, 'read'), { path: 'docs/a.txt' })).content).toContain('2')
    expect((await call(toolNamed(root, 'list'), { recursive: true })).content).toBe('dir  docs\nfile docs/a.txt')
  })

  test('a field may be spelled in the ways that models often use', async () => {
    const root = await folderWith({ 'a.txt': 'a' })
    for (const args of [{ filePath: 'a.txt' }, { file_path: 'a.txt' }, { file: 'a.txt' }, { path: '<a.txt>' }]) {
      expect(await call(toolNamed(root, 'read'), args)).toMatchObject({ ok: true })
    }
    expect(await call(toolNamed(root, 'read'), { path: 'a.txt', mode: 'r' })).toMatchObject({
      ok: false,
      metadata: { error_type: 'ValidationError', retry: true },
    })
  })
})
