// What `import 'thinharness'` loads: no package at all. Shown by importing the build in a folder that has no packages,
// making a harness there, and running it on a model of its own.
import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const PROGRAM = `
import { Harness, defineTool, fileLog, memoryLog } from './dist/index.js'
new Harness()
const reply = { role: 'assistant', parts: [{ type: 'text', text: 'yes' }], provider: 'p', model: 'm', finishReason: 'stop',
  usage: { inputTokens: 1, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 } }
const turn = { entry: reply, text: 'yes', toolCalls: [], finishReason: 'stop', nativeFinishReason: null, usage: reply.usage,
  responseId: null, responseModel: null, raw: null }
const model = { provider: 'p', id: 'm', capabilities: {}, openSession: () => ({ turn: async () => turn }) }
const result = await new Harness({ model, builtinTools: [] }).run('Is anybody there?')
if (result.text !== 'yes') throw new Error('Expected an answer, got ' + result.text)
console.log(process.moduleLoadList.filter((name) => name.startsWith('NativeModule ')).length)
`

const folder = mkdtempSync(join(tmpdir(), 'thinharness-import-'))
try {
  cpSync('dist', join(folder, 'dist'), { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  writeFileSync(join(folder, 'program.js'), PROGRAM)
  execFileSync(process.execPath, ['program.js'], { cwd: folder, stdio: 'pipe' })
  console.log("`import 'thinharness'`, a harness and a run load no package.")
} finally {
  rmSync(folder, { recursive: true, force: true })
}
