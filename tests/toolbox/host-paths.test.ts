import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { Harness } from 'thinharness'
import type { HarnessOptions, JsonObject, StreamEvent } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { bash, fetchUrl, fileTools, parallelLlm, shell } from 'thinharness/tools'
import { folderWith } from './support.js'
import { skillText } from './skills/support.js'

const FILES = {
  'src/a.ts': 'export const a = 1\n',
  'src/long.txt': 'late order\n'.repeat(8_000),
  'src/binary.bin': 'a\0b',
  'rows.jsonl': '{"id":1}\nnot json\n',
  'rows/deep.jsonl': `{"text":"${'x'.repeat(60_000)}"}\n`,
  'bad.json': '{"prompts": 1}',
  'ask.json': '["one", "two"]',
  'broken.pdf': '%PDF-1.4 broken',
  'broken.png': '\u0089PNG broken',
  '.env': 'KEY=1',
}

/** Successes and failures of every tool of the package. */
const CALLS: Readonly<Record<string, readonly JsonObject[]>> = {
  read: [
    { path: 'src/a.ts' },
    { path: 'src/long.txt' },
    { path: 'src' },
    { path: 'missing.ts' },
    { path: '../out.ts' },
    { path: 'outside' },
    { path: '.env' },
    { path: 'broken.pdf' },
    { path: 'broken.png' },
    { path: 'src/a.ts/b' },
    { path: 'x'.repeat(300) },
    {},
  ],
  write: [
    { path: 'new/b.ts', content: 'b' },
    { path: 'src', content: 'b' },
    { path: 'src/a.ts/b.ts', content: 'b' },
    { path: '../out.ts', content: 'b' },
    { path: 'outside/b.ts', content: 'b' },
    { path: '.git/config', content: 'b' },
    { path: '.thinharness/b', content: 'b' },
  ],
  edit: [
    { edits: [{ path: 'src/a.ts', old_string: 'a = 1', new_string: 'a = 2' }] },
    { edits: [{ path: 'src/a.ts', old_string: 'missing', new_string: 'a' }] },
    { edits: [{ path: 'missing.ts', old_string: 'a', new_string: 'b' }] },
    { edits: [{ path: 'src', old_string: 'a', new_string: 'b' }] },
    { edits: [{ path: 'src/binary.bin', old_string: 'a', new_string: 'b' }] },
  ],
  search: [
    { query: 'export' },
    { query: 'late', max_matches_per_file: 5_000 },
    { query: '(' },
    { query: 'a', path: 'missing' },
    { query: 'a', path: '../..' },
    { query: 'nowhere to be found' },
  ],
  list: [{}, { path: 'src', recursive: true }, { path: 'missing' }, { path: 'src/a.ts' }, { path: '..' }],
  glob: [{ pattern: '**/*.ts' }, { pattern: '*', path: 'missing' }, { pattern: '*', path: 'src/a.ts' }],
  jsonl_search: [
    { path: 'rows.jsonl' },
    { path: 'rows', fields: { text: 60_000 } },
    { path: 'missing.jsonl' },
    { path: '..' },
    { where: [{ field: 'id', op: 'eq', value: '1' }] },
    { order_by: [{ field: 'id' }] },
  ],
  parallel_llm: [
    { source: { kind: 'file', path: 'ask.json' }, output_file: 'answers.json' },
    { source: { kind: 'inline', prompts: ['one'] }, output_file: 'src' },
    { source: { kind: 'file', path: 'bad.json' } },
    { source: { kind: 'file', path: 'missing.json' } },
    { source: { kind: 'file', path: '../missing.json' } },
  ],
  subagent: [
    { agent: 'helper', prompt: 'Help.' },
    { agent: 'nobody', prompt: 'Help.' },
  ],
  skill_read: [
    { skill_name: 'deploy' },
    { skill_name: 'deploy', path: 'missing.md' },
    { skill_name: 'deploy', path: '../other' },
    { skill_name: 'deploy', path: 'scripts' },
    { skill_name: 'nothing' },
  ],
  skill_run: [
    { skill_name: 'deploy', script: 'scripts/ok.sh' },
    { skill_name: 'deploy', script: 'scripts/fails.sh' },
    { skill_name: 'deploy', script: 'scripts/missing.sh' },
    { skill_name: 'deploy', script: 'scripts' },
    { skill_name: 'deploy', script: '../../out.sh' },
  ],
  bash: [
    { command: 'echo one; exit 3' },
    { command: 'yes | head -c 200000' },
    { command: 'no_such_program' },
    { command: 'cat missing.txt', cwd: 'src' },
    { command: 'true', cwd: 'missing' },
    { command: 'true', cwd: '../..' },
    { command: 'echo later', background: true },
  ],
  bash_output: [{ id: 'bg_1', wait_ms: 5_000 }, { id: 'bg_9' }],
  bash_kill: [{ id: 'bg_1' }, { id: 'bg_9' }],
  fetch_url: [{ url: 'http://127.0.0.1:9/' }, { url: 'file:///etc/passwd' }, { url: 'nonsense' }],
}

async function placesOf(): Promise<{ readonly root: string; readonly skills: string }> {
  const [root, outside] = [await folderWith(FILES), await folderWith({ 'b.ts': 'b' })]
  await symlink(outside, join(root, 'outside'))
  const skills = await folderWith({
    'deploy/SKILL.md': skillText('deploy'),
    'deploy/scripts/ok.sh': 'echo ok',
    'deploy/scripts/fails.sh': 'echo no; exit 2',
  })
  return { root, skills }
}

/** The offered tools, and everything that the model of a run reads of calls. */
async function readIn(options: HarnessOptions, calls: typeof CALLS) {
  const script = new ScriptedModel()
  for (const [name, each] of Object.entries(calls)) for (const args of each) script.calls(name, args)
  script.says('Done.')
  await using harness = new Harness({ ...options, model: script, toolRetries: 100, limits: { modelRequests: 200 } })
  const events: StreamEvent[] = []
  for await (const event of harness.stream('Go.')) events.push(event)
  const contents = script.heard.flatMap((heard) => (heard.kind === 'tool_outputs' ? heard.outputs : []))
  return { contents, tools: script.requests[0]?.constants.tools ?? [] }
}

/** Parts of a path that reveal where a folder is. */
function expectNoPath(contents: readonly { readonly content: string }[], ...folders: readonly string[]): void {
  for (const folder of folders.flatMap((each) => [each, dirname(each)]))
    for (const { content } of contents) expect(content).not.toContain(folder)
}

describe('paths of the host', () => {
  test.each([
    ['ripgrep', {}],
    ['the built-in engine', { ripgrep: false as const }],
  ])(
    'FT-84 no result and no failure of a tool contains the absolute path of its root or skill: %s',
    async (_, search) => {
      const { root, skills } = await placesOf()
      const helper = { name: 'helper', description: 'Helps.', tools: [], model: new ScriptedModel().says('Helped.') }
      const { contents, tools } = await readIn(
        {
          root,
          builtinTools: ['jsonl_search'],
          tools: [...fileTools(search), parallelLlm({ model: new ScriptedModel().always('Answer.') }), fetchUrl()],
          subagents: [helper],
          skills: { dirs: [skills], sandbox: 'off' },
          use: [shell({ sandbox: 'off' })],
        },
        CALLS,
      )
      expect(tools.map(({ name }) => name).sort()).toEqual(Object.keys(CALLS).sort())
      expect(contents).toHaveLength(Object.values(CALLS).flat().length)
      expectNoPath(contents, root, skills)
    },
  )

  test('a skill in the workspace is named by its path there', async () => {
    const { root } = await placesOf()
    await mkdir(join(root, 'skills/deploy'), { recursive: true })
    await writeFile(join(root, 'skills/deploy/SKILL.md'), skillText('deploy'))
    const calls = { skill_read: [{ skill_name: 'deploy' }] }
    const { contents } = await readIn({ root, skills: { dirs: ['skills'] } }, calls)
    expect(contents[0]?.content).toContain('Folder: skills/deploy\n')
    expectNoPath(contents, root)
  })

  test('a command in a sandbox that cannot start does not name the root', async () => {
    const { root } = await placesOf()
    const calls = {
      bash: [{ command: 'cat missing' }, { command: 'true', cwd: 'missing' }, { command: 'x'.repeat(200_000) }],
    }
    const { contents } = await readIn({ root, tools: [bash()] }, calls)
    expectNoPath(contents, root)
  })
})
