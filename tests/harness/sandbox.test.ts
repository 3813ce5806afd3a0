import { expect, test } from 'vitest'
import { Harness } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { bash } from 'thinharness/tools'
import { folderWith } from '../toolbox/support.js'
import { formsHere, onlyPath } from '../toolbox/sandbox/support.js'
import { collect } from '../support/collect.js'

const forms = await formsHere()
const PROBLEM = 'the program `bwrap` is not installed; the program `unshare` is not installed'

async function warningsOf(harness: Harness): Promise<readonly string[]> {
  const events = await collect(harness.stream('Go.'))
  return events.flatMap((event) => (event.kind === 'warning' ? [event.message] : []))
}

function modelOf(runs: number): ScriptedModel {
  const model = new ScriptedModel()
  for (let run = 0; run < runs; run++) model.says('Done.')
  return model
}

test('BA-36 without a sandbox, the first run has a warning, and the description says so', async () => {
  onlyPath(await folderWith())
  const harness = new Harness({ model: modelOf(2), root: await folderWith(), tools: [bash()] })
  const warning = `This machine has no sandbox (${PROBLEM}). Programs of \`bash\` run with all rights of this process and can read its environment.`
  expect(await warningsOf(harness)).toEqual([warning])
  expect(await warningsOf(harness)).toEqual([])
  const description = await harness.describe()
  expect(description).toMatchObject({ sandbox: { form: 'none', problem: PROBLEM }, warnings: [warning] })
  expect(description.tools.find(({ name }) => name === 'bash')?.sandbox).toBe('auto')
  expect(String(description)).toContain('sandbox   none\n')
})

test('BA-36 `off` and tools that start no programs have no warning; `required` says that nothing is started', async () => {
  onlyPath(await folderWith())
  const root = await folderWith()
  const off = new Harness({ model: modelOf(1), root, tools: [bash()], sandbox: 'off' })
  expect(await warningsOf(off)).toEqual([])
  expect(String(await off.describe())).toContain('without a sandbox')
  expect((await off.describe()).sandbox).toBeNull()
  expect(await warningsOf(new Harness({ model: modelOf(1), root }))).toEqual([])
  const required = new Harness({ model: modelOf(1), root, tools: [bash()], sandbox: 'required' })
  expect(await warningsOf(required)).toEqual([
    `This machine has no sandbox (${PROBLEM}). Programs of \`bash\` are not started.`,
  ])
})

test('BA-36 the mode of the harness holds for its tools and for those of child runs', async () => {
  onlyPath(await folderWith())
  const root = await folderWith()
  const model = new ScriptedModel()
    .calls('bash', { command: 'echo hi' })
    .calls('subagent', { prompt: 'Try too.' })
    .calls('bash', { command: 'echo hi' })
    .says('Refused.')
    .says('Done.')
  const harness = new Harness({ model, root, tools: [bash()], subagents: [], sandbox: 'required' })
  const { toolCallRecords } = await harness.run('Go.')
  expect(JSON.stringify(toolCallRecords[0])).toContain('SandboxUnavailable')
  expect(JSON.stringify(model.heard)).not.toContain('stdout')
})

test.skipIf(forms.length === 0)('BA-36 with a sandbox, the description has its form', async () => {
  const harness = new Harness({ model: modelOf(1), root: await folderWith(), tools: [bash()] })
  expect(await warningsOf(harness)).toEqual([])
  expect((await harness.describe()).sandbox).toEqual({ form: forms[0]?.form, problem: null })
})
