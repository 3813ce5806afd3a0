import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { ScriptedModel } from 'thinharness/testing'
import { folderWith } from '../toolbox/support.js'
import { HEADING, skillText } from '../toolbox/skills/support.js'
import { eventsOf, harnessOf, ofKind, tool } from './support.js'

describe('skills of a harness', () => {
  test('HC-23 HC-27 HC-29 their summary precedes the instructions of tools, and their tools are offered', async () => {
    const root = await folderWith({ 'skills/a/SKILL.md': skillText('a'), 'skills/b/SKILL.md': skillText('b') })
    const model = new ScriptedModel().calls('skill_read', { skill_name: 'b' }).says('Done.')
    await using harness = harnessOf({
      model,
      root,
      instructions: 'Base.',
      tools: [tool('own', undefined, { instructions: 'Use own.' })],
      skills: { dirs: ['skills'], selected: ['b'] },
    })

    await harness.run('Go.')

    expect(model.requests[0]?.constants.instructions).toBe(
      `Base.\n\nWorkspace root: ${root}\n\n${HEADING}\n- b - What b does.\n\nUse own.`,
    )
    expect(model.requests[0]?.constants.tools.map(({ name }) => name)).toEqual(['own', 'skill_read', 'skill_run'])
    expect(model.heard.at(-1)).toMatchObject({
      outputs: [{ ok: true, content: expect.stringContaining('# b') as unknown }],
    })
  })

  test('HC-28 skills are loaded only from configured folders', async () => {
    const root = await folderWith({ 'skills/a/SKILL.md': skillText('a'), 'SKILL.md': skillText('top') })
    const model = new ScriptedModel().says('One.').says('Two.')
    await using without = harnessOf({ model, root, instructions: '' })
    await using none = harnessOf({ model, root, instructions: '', skills: { dirs: [] } })

    await without.run('Go.')
    await none.run('Go.')

    expect(model.requests.map(({ constants: { instructions, tools } }) => [instructions, tools])).toEqual([
      [`Workspace root: ${root}`, []],
      [`Workspace root: ${root}`, []],
    ])
  })

  test('HC-30 a selection without a folder is rejected at once', () => {
    expect(() => harnessOf({ skills: { selected: ['a'] } as never })).toThrow(
      'Expected `skills` of `Harness` to be an object with `dirs`, a list of folders',
    )
  })

  test('HC-27 a selected skill that is missing fails the run before any request, and is found once it exists', async () => {
    const root = await folderWith({ 'skills/a/SKILL.md': skillText('a') })
    const model = new ScriptedModel()
    await using harness = harnessOf({ model, root, skills: { dirs: ['skills'], selected: ['b'] } })

    await expect(harness.run('Go.')).rejects.toMatchObject({
      code: 'invalid_options',
      message: 'There is no skill `b` to select. Did you mean `a`?',
    })
    expect(model.heard).toEqual([])
  })

  test('problems of an optional skill are reported as warnings', async () => {
    const root = await folderWith({ 'skills/a/SKILL.md': skillText('a'), 'skills/broken/SKILL.md': 'no front matter' })
    const model = new ScriptedModel().says('Done.')
    await using harness = harnessOf({ model, root, skills: { dirs: ['skills', 'nowhere'] } })

    const events = await eventsOf(harness.stream('Go.'))

    expect(ofKind(events, 'warning').map(({ message }) => message)).toEqual([
      expect.stringContaining(join(root, 'nowhere')),
      expect.stringContaining(join(root, 'skills/broken/SKILL.md')),
    ])
  })
})
