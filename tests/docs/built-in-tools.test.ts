import { fileURLToPath } from 'node:url'
import { Harness, memoryLog } from 'thinharness'
import type { HarnessOptions, ToolDefinition } from 'thinharness'
import { recall } from 'thinharness/context'
import { createMemory } from 'thinharness/memory'
import { askUser, requestAccess, submitPlan, tasks } from 'thinharness/session'
import { ScriptedModel } from 'thinharness/testing'
import { fetchUrl, fileTools, jsonlSearch, shell } from 'thinharness/tools'
import { expect, test } from 'vitest'
import type { JsonSchema } from '#util/json.js'
import { skillText } from '../toolbox/skills/support.js'
import { folderWith } from '../toolbox/support.js'

const PAGE = fileURLToPath(new URL('../../docs/built-in-tools.md', import.meta.url))

interface Group {
  readonly title: string
  /** One paragraph: how a host offers these tools. */
  readonly use: string
  readonly options: HarnessOptions
}

const dir = await folderWith({ 'notes/SKILL.md': skillText('notes') })

const GROUPS: readonly Group[] = [
  {
    title: 'Files',
    use: "A harness with a `root` has these by default; `builtinTools: ['read', 'search']` chooses. Options (protected files, limits, other folders): `fileTools({ … })` of `thinharness/tools` among the `tools`. See [File tools](file-tools.md).",
    options: { tools: fileTools() },
  },
  {
    title: 'JSONL files',
    use: "`builtinTools: ['jsonl_search']`, or `jsonlSearch()`.",
    options: { tools: [jsonlSearch()] },
  },
  {
    title: 'Commands',
    use: '`tools: [bash()]`; `use: [shell()]` in its place has the argument `background` and the other two. See [Sandbox](sandbox.md).',
    options: { use: [shell()] },
  },
  {
    title: 'Web pages',
    use: '`tools: [fetchUrl()]`. See [Fetching pages](fetching.md).',
    options: { tools: [fetchUrl()] },
  },
  {
    title: 'Skills',
    use: "`skills: { dirs: ['skills'] }`. See [Skills](skills.md).",
    options: { skills: { dirs: [dir] } },
  },
  {
    title: 'Other agents',
    use: "`subagents: []`, or `tools: [subagent({ … })]`; `builtinTools: ['parallel_llm']`, or `parallelLlm()`. See [Subagents](subagents.md).",
    options: { subagents: [], builtinTools: ['parallel_llm'] },
  },
  {
    title: 'People',
    use: '`askUser()`, `submitPlan()`, `requestAccess()` of `thinharness/session` among the `tools`. See [Approvals in conversations](conversation-approvals.md).',
    options: { tools: [askUser(), submitPlan(), requestAccess()] },
  },
  { title: 'Tasks', use: '`use: [tasks()]` of `thinharness/session`.', options: { use: [tasks()] } },
  {
    title: 'Memory',
    use: '`use: [createMemory({ … })]` of `thinharness/memory`. See [Memory](memory.md).',
    options: { tools: createMemory({ log: memoryLog() }).tools },
  },
  {
    title: 'Long conversations',
    use: '`tools: [recall]` of `thinharness/context`. See [Long conversations](long-conversations.md).',
    options: { tools: [recall] },
  },
]

/** As a model is told of them. */
async function toolsOf({ options }: Group): Promise<readonly ToolDefinition[]> {
  using model = new ScriptedModel().says('Done.')
  await using harness = new Harness({ model, ...options })
  await harness.run('Go.')
  return model.requests[0]?.constants.tools ?? []
}

function toolText({ name, description, parameters: schema }: ToolDefinition): string {
  const required = new Set((schema['required'] as readonly string[] | undefined) ?? [])
  const properties = Object.entries((schema['properties'] ?? {}) as Record<string, JsonSchema>)
  const rows = properties.map(([field, property]) => {
    return `| \`${field}\` | ${typeText(property)} | ${required.has(field) ? 'required' : ''} | ${cell(property['description'])} |`
  })
  const table = ['| Argument | Type | | |', '| --- | --- | --- | --- |', ...rows].join('\n')
  return `### \`${name}\`\n\n${description}\n\n${rows.length === 0 ? 'No arguments.' : table}`
}

function typeText(schema: JsonSchema): string {
  const alternatives = (schema['anyOf'] ?? schema['oneOf']) as readonly JsonSchema[] | undefined
  if (alternatives !== undefined) return alternatives.map(typeText).join(' or ')
  const options = schema['enum'] as readonly unknown[] | undefined
  if (options !== undefined) return options.map((option) => `\`${JSON.stringify(option)}\``).join(', ')
  if (schema['type'] === 'array') return `list of ${typeText((schema['items'] ?? {}) as JsonSchema)}`
  if (schema['type'] !== 'object')
    return [(schema['type'] ?? 'any value') as string | readonly string[]].flat().join(' or ')
  const fields = Object.keys((schema['properties'] ?? {}) as object)
  return fields.length === 0 ? 'object' : `object of ${fields.map((field) => `\`${field}\``).join(', ')}`
}

function cell(text: unknown): string {
  return (typeof text === 'string' ? text : '').replaceAll('|', '\\|').replaceAll('\n', ' ')
}

test('docs/built-in-tools.md has every tool of the package with the arguments of its schema', async () => {
  const sections = await Promise.all(
    GROUPS.map(async (group) => [`## ${group.title}`, group.use, ...(await toolsOf(group)).map(toolText)].join('\n\n')),
  )
  const page = `# Built-in tools

The tools of the package, as a model sees them: this page is made from their schemas (\`tests/docs/built-in-tools.test.ts\`). Common slips
of models (another name of an argument, a number in quotes) are repaired before a call. \`await harness.describe()\` has the tools of your harness.

${sections.join('\n\n')}
`
  await expect(await prettierText(page)).toMatchFileSnapshot(PAGE)
})

async function prettierText(text: string): Promise<string> {
  const { format, resolveConfig } = await import('prettier')
  return format(text, { ...(await resolveConfig(PAGE)), parser: 'markdown' })
}
