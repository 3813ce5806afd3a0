import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileLog, Harness } from 'thinharness'
import { mcpHttp, serveMcp } from 'thinharness/mcp'
import { ScriptedModel } from 'thinharness/testing'
import { ask } from './agent.js'

const root = mkdtempSync(join(tmpdir(), 'thinharness-program-'))
writeFileSync(join(root, 'note.md'), 'The storm was on Monday.\n')

console.log(await ask({ log: fileLog(join(root, 'runs')) }))
console.log(await search())
console.log(await useMcp().catch((error) => `${error.code}: ${error.message}`))

/** Files, and ripgrep if it is installed where the program runs. */
async function search() {
  const model = new ScriptedModel()
    .calls('search', { query: 'storm' })
    .replies(({ heard }) => (heard.outputs[0].content.includes('The storm was on Monday.') ? 'Monday.' : 'Not found.'))
  return answerOf(new Harness({ model, root }), 'When was the storm?')
}

/** A harness as a server, and its tool called by another one. */
async function useMcp() {
  const served = new Harness({ model: new ScriptedModel().says('Tuesday.'), builtinTools: [] })
  const serving = await serveMcp(served, { transport: { port: 0 } })
  const server = mcpHttp({ url: serving.url, id: 'other' })
  const model = new ScriptedModel()
    .calls('run', { prompt: 'Which day?' })
    .replies(({ heard }) =>
      heard.outputs[0].content.includes('Tuesday.') ? 'Tuesday, by MCP.' : heard.outputs[0].content,
    )
  try {
    return await answerOf(new Harness({ model, builtinTools: [], mcpServers: [server] }), 'Which day?')
  } finally {
    await serving.close()
  }
}

async function answerOf(harness, prompt) {
  try {
    return (await harness.run(prompt)).text
  } finally {
    await harness.close()
  }
}
