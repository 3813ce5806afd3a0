import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Harness } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { ask } from '../../../agent.js'

export const dynamic = 'force-dynamic'

export async function GET() {
  const root = mkdtempSync(join(tmpdir(), 'thinharness-next-'))
  writeFileSync(join(root, 'note.md'), 'The storm was on Monday.\n')
  const model = new ScriptedModel().calls('search', { query: 'storm' }).says('Monday.')
  const harness = new Harness({ model, root })
  const { text } = await harness.run('When was the storm?')
  await harness.close()
  return new Response(`${await ask()}\n${text}`)
}
