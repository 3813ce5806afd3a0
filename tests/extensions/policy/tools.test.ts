import { describe, expect, test } from 'vitest'
import { defineTool } from 'thinharness'
import type { ToolSpec } from 'thinharness'
import { categoryOf, explain } from 'thinharness/policy'
import type { Category } from 'thinharness/policy'
import { bash, fetchUrl, fileTools, jsonlSearch, parallelLlm, shell, subagent } from 'thinharness/tools'
import { skillsWith, skillText } from '../../toolbox/skills/support.js'
import { tool } from '../../harness/support.js'

const CATEGORIES: Readonly<Record<string, Category>> = {
  read: 'read',
  list: 'read',
  glob: 'read',
  search: 'read',
  jsonl_search: 'read',
  skill_read: 'read',
  write: 'edit',
  edit: 'edit',
  bash: 'execute',
  bash_output: 'read',
  bash_kill: 'execute',
  skill_run: 'execute',
  fetch_url: 'network',
  subagent: 'other',
  parallel_llm: 'edit',
}

describe('categories', () => {
  test('every tool of the package has its category, from its reach and its annotations', async () => {
    const { tools: skills } = await skillsWith({ 'a/SKILL.md': skillText('a') })
    const tools: readonly ToolSpec[] = [
      ...fileTools(),
      ...[jsonlSearch(), fetchUrl(), subagent(), parallelLlm()],
      ...(shell().tools ?? []),
      ...skills,
    ]
    expect(Object.fromEntries(tools.map((spec) => [spec.name, categoryOf(spec)]))).toEqual(CATEGORIES)
    expect(categoryOf(bash({ sandbox: 'required' }))).toBe('execute')
  })

  test.each<[string, Partial<ToolSpec>, Category]>([
    ['anything', { annotations: { readOnly: true } }, 'read'],
    ['anything', { annotations: { readOnly: true, openWorld: true } }, 'network'],
    ['anything', { annotations: { readOnly: false, openWorld: false } }, 'edit'],
    ['read_it', { annotations: { readOnly: false, openWorld: true } }, 'other'],
    ['anything', { reach: { writes: ['.'] } }, 'edit'],
    ['anything', { reach: { hosts: ['a.test'] } }, 'network'],
    ['anything', { reach: { programs: ['git'] }, annotations: { readOnly: true } }, 'execute'],
    ['runShell', {}, 'execute'],
    ['delete-row', {}, 'edit'],
    ['download', {}, 'network'],
    ['list_rows', {}, 'read'],
    ['pay', {}, 'other'],
    ['read', { metadata: { source: 'mcp' }, annotations: { readOnly: true } }, 'mcp'],
  ])('%s with %o is %s', (name, more, category) => {
    expect(categoryOf({ ...tool(name), ...more })).toBe(category)
  })

  test('a tool of a server cannot pass for an interactive one', () => {
    const rules = [{ decision: 'ask' as const }]
    expect(explain(rules, { tool: 'ask_user' })).toMatchObject({ decision: 'allow', step: 'interactive' })
    expect(explain(rules, { tool: 'ask_user', metadata: { source: 'mcp' } })).toMatchObject({ decision: 'ask' })
    expect(explain([{ decision: 'deny', tool: 'task_*' }], { tool: 'task_write' })).toMatchObject({ decision: 'deny' })
  })

  test('commands of any tool that runs commands are read', () => {
    const rules = [{ decision: 'deny' as const, command: 'rm *' }]
    const run = defineTool({
      name: 'in_container',
      description: 'Runs a command.',
      parameters: { type: 'object' },
      handler: () => 'ok',
      reach: { programs: ['*'] },
    })
    const args = { command: 'ls && rm x' }
    expect(explain(rules, { tool: run.name, reach: run.reach, args }).decision).toBe('deny')
    expect(explain(rules, { tool: 'execute_command', metadata: { source: 'mcp' }, args }).decision).toBe('deny')
    expect(explain(rules, { tool: 'robot', args }).decision).toBeNull()
  })
})
