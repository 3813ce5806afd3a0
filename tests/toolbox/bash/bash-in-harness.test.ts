import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Harness } from '#index.js'
import { ScriptedModel } from '#testing/index.js'
import { bash } from '#toolbox/bash/bash.js'
import { folderWith } from '../support.js'

test('BA-11 BA-12 BA-14 `bash` is passed as a tool and is then the only tool offered; its name is not a built-in; a batch of calls runs in order', async () => {
  const root = await folderWith()
  const model = new ScriptedModel()
    .callsAll([
      { name: 'bash', arguments: { command: 'sleep 0.2; echo one >> log' } },
      { name: 'bash', arguments: { command: 'echo two >> log; exit 3' } },
      { name: 'bash', arguments: { command: 'cat log' } },
    ])
    .says('Done.')
  const harness = new Harness({ model, root, builtinTools: [], tools: [bash()] })
  const result = await harness.run('Go.')
  expect(result.text).toBe('Done.')
  expect(await readFile(join(root, 'log'), 'utf8')).toBe('one\ntwo\n')
  expect(result.toolCallRecords.map(({ call: { name } }) => name)).toEqual(['bash', 'bash', 'bash'])
  const names: unknown = ['bash']
  expect(() => new Harness({ builtinTools: names as [] })).toThrow('bash')
})
