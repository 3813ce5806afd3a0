import { readFile, readdir, writeFile } from 'node:fs/promises'
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

test('a difference in the instructions is accepted if it is allowed, and reported', async () => {
  const file = await recorded(new ScriptedModel().calls('count', {}).says('One.'))
  const { result, differences } = await replayTest(file, harnessOf(new ScriptedModel(), 'Count twice.'), {
    allow: ['instructions'],
  })
  expect(result?.text).toBe('One.')
  expect(differences).toEqual([
    expect.stringMatching(/^Event \d+: the instructions of the request are not those that were recorded\.$/),
  ])
  const strict = replayTest(file, harnessOf(new ScriptedModel(), 'Count twice.'), { allow: ['tools'] })
  await expect(strict).rejects.toMatchObject({ code: 'replay_mismatch' })
})

test('`record` runs the recorded prompt again and replaces the file; the new recording is a test', async () => {
  const file = await recorded(new ScriptedModel().calls('count', {}).says('One.'))
  const model = new ScriptedModel().calls('count', {}).says('Two.')
  const again = await replayTest(file, harnessOf(model, 'Count twice.'), { record: true })
  expect([again.result?.text, again.differences]).toEqual(['Two.', []])
  model.assertDone()
  expect(model.heard[0]).toMatchObject({ prompt: 'Go.' })
  const { result } = await replayTest(file, harnessOf(new ScriptedModel(), 'Count twice.'))
  expect(result?.text).toBe('Two.')
})

test('a recording stays as it is if the new run fails', async () => {
  const file = await recorded(new ScriptedModel().says('One.'))
  const before = await readFile(file, 'utf8')
  const failing = replayTest(file, harnessOf(new ScriptedModel().fails('No network.')), { record: true })
  await expect(failing).rejects.toMatchObject({ message: expect.stringContaining('No network.') as string })
  expect(await readFile(file, 'utf8')).toBe(before)
  expect((await readdir(folder)).filter((name) => name.endsWith('.tmp'))).toEqual([])
})
