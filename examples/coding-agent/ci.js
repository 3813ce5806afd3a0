// The same agent in a program of your own, where nobody can be asked: `node ci.js "Make the tests pass."`
// Edits are allowed, other questions are refused, and the run ends well only if the tests pass.
import { spawnSync } from 'node:child_process'
import { build, root } from './agent.js'

const [task = 'Make the tests pass.'] = process.argv.slice(2)
let result = await finished(build.stream(task))
while (result.status === 'paused') {
  const answers = result.pending.map(({ callId, toolName }) =>
    toolName === 'edit' || toolName === 'write'
      ? { callId, approved: true, by: 'ci' }
      : { callId, approved: false, reason: 'Nobody is here to ask.', by: 'ci' },
  )
  result = await finished(build.streamResume(result.resumeState, answers))
}
await build.close()
console.log(result.text)

const { status } = spawnSync(process.execPath, ['--test'], { cwd: root, stdio: 'ignore' })
console.log(status === 0 ? 'The tests pass.' : 'The tests fail.')
process.exitCode = status === 0 ? 0 : 1

/** Prints what is done, and gives the result. */
async function finished(stream) {
  for await (const event of stream) {
    if (event.kind === 'tool_call_started') console.log(`→ ${event.toolName} ${event.arguments}`)
    if (event.kind === 'tool_call_completed') console.log(`← ${event.ok ? 'done' : event.message}`)
  }
  return stream.result
}
