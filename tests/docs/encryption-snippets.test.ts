import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ScriptedModel } from 'thinharness/testing'
import { changeKey, encryptedLog } from '../../docs/snippets/encryption/encrypted-log.js'
import { harnessOf } from '../harness/support.js'
import { temporaryFolder } from '../support/folder.js'

test('the log of docs/encryption.md holds no word of a run, and is read with its new key', async () => {
  const path = join(temporaryFolder(), 'runs.db')
  const keys = { old: randomBytes(32), new: randomBytes(32) }
  using model = new ScriptedModel().says('A secret answer.')
  await using log = encryptedLog(path, keys, 'old')
  const { runId } = await harnessOf({ model, log }).run('A secret question.')
  expect(await changeKey(log, keys, 'new')).toEqual([])
  await log.close()
  expect(readFileSync(path).includes('secret')).toBe(false)
  await using later = encryptedLog(path, { new: keys.new }, 'new')
  expect(await later.inspect({ kind: 'run', id: runId })).toMatchObject({ status: 'completed' })
})
