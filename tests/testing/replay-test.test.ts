import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { defineTool, fileLog, Harness } from 'thinharness'
import { replayTest, ScriptedModel } from 'thinharness/testing'
import { temporaryFolder } from '../support/folder.js'

let folder = ''
beforeEach(() => void (folder = temporaryFolder()))

const count = defineTool({ name: 'count', description: 'Counts.', parameters: { type: 'object' }, handler: () => 1 })

function harnessOf(model: ScriptedModel, instructions = 'Count.', modelRequests = 8): Harness {
  return new Harness({ model, tools: [count], builtinTools: [], instructions, limits: { modelRequests } })
}

async function recorded(model: ScriptedModel, modelRequests = 8): Promise<string> {
  const log = fileLog(folder)
  await harnessOf(model, 'Count.', modelRequests)
    .run('Go.', { log })
    .catch(() => undefined)
  const name = (await readdir(folder)).find((each) => each.endsWith('.jsonl'))
  return join(folder, name ?? '')
}

test('a file of events is a test: the same result, without a request', async () => {
  const file = await recorded(new ScriptedModel().calls('count', {}).says('One.'))
  const { result, error } = await replayTest(file, harnessOf(new ScriptedModel()))
  expect(error).toBeNull()
  expect(result).toMatchObject({ text: 'One.', usage: { toolCalls: 1 } })
})

test('a run that failed fails again, in the same way', async () => {
  const file = await recorded(new ScriptedModel().calls('count', {}), 1)
  const { result, error } = await replayTest(file, harnessOf(new ScriptedModel(), 'Count.', 1))
  expect(result).toBeNull()
  expect(error).toMatchObject({ code: 'limit_reached', run: { usage: { modelRequests: 1 } } })
})

test('a harness that behaves differently fails it, and the difference is located', async () => {
  const file = await recorded(new ScriptedModel().says('One.'))
  const replayed = replayTest(file, harnessOf(new ScriptedModel(), 'Count twice.'))
  await expect(replayed).rejects.toMatchObject({ code: 'replay_mismatch' })
})

test('an invalid log is rejected with its line', async () => {
  const file = join(folder, 'broken.jsonl')
  await writeFile(file, '{"kind":"run_started"}\nno json\n')
  await expect(replayTest(file, harnessOf(new ScriptedModel()))).rejects.toThrow(/Line 2/)
})
