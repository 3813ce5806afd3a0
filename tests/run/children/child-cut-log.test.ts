import { readFile, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { fileLog } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { harnessOf, tool } from '../../harness/support.js'
import { temporaryFolder } from '../../support/folder.js'

test.each([['nothing'], ['{"kind":"run_sta']])(
  'a child whose log was cut within its first event (%s) starts again when its parent is recovered',
  async (kept) => {
    const folder = temporaryFolder()
    const children: string[] = []
    const delegate = tool(
      'delegate',
      async (_, context) => {
        const child = context.spawn({ prompt: 'Below.', model: new ScriptedModel().says('Done below.') })
        children.push(child.runId)
        return (await child.result).text
      },
      { onUnknownOutcome: 'retry' },
    )
    using model = new ScriptedModel().calls('delegate').says('Done.')
    await harnessOf({ model, tools: [delegate], log: fileLog(folder) }).run('Go.', { runId: 'run_p' })
    const lines = await linesOf(join(folder, 'run_p.jsonl'))
    const cut = lines.findIndex((line) => line.includes('"kind":"tool_call_started"')) + 1
    await writeFile(
      join(folder, 'run_p.jsonl'),
      lines
        .slice(0, cut)
        .map((line) => `${line}\n`)
        .join(''),
    )
    const name = (await readdir(folder)).find((each) => each.includes(children[0] ?? 'none'))
    await writeFile(join(folder, name ?? ''), kept === 'nothing' ? '' : kept)

    using again = new ScriptedModel().says('Done.')
    const result = await harnessOf({ model: again, tools: [delegate], log: fileLog(folder) }).recover('run_p')
    expect(result.toolCallRecords[0]?.output).toContain('Done below.')
    expect(children[1]).toBe(children[0])
  },
)

async function linesOf(path: string): Promise<string[]> {
  return (await readFile(path, 'utf8')).trimEnd().split('\n')
}
