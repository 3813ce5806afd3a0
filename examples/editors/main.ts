// An agent for editors, ./server.ts, and in place of the editor the client of the protocol's own package.
//   npm run example -- editors
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { Readable, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { client, ndJsonStream } from '@agentclientprotocol/sdk'

writeFileSync('greeting.txt', 'Hello, wolrd!\n')

const program = spawn(process.execPath, [fileURLToPath(new URL('server.js', import.meta.url))], {
  stdio: ['pipe', 'pipe', 'inherit'],
})
const stream = ndJsonStream(Writable.toWeb(program.stdin), Readable.toWeb(program.stdout) as ReadableStream<Uint8Array>)

const editor = client({ name: 'example' }).onNotification('session/update', ({ params: { update } }) => {
  if (update.sessionUpdate === 'tool_call') console.log(`→ ${update.title} (${update.kind ?? 'other'})`)
  if (update.sessionUpdate === 'agent_message_chunk' && update.content.type === 'text')
    process.stdout.write(update.content.text)
})

await editor.connectWith(stream, async (agent) => {
  const { agentInfo } = await agent.request('initialize', { protocolVersion: 1 })
  console.log(`${agentInfo?.title ?? 'The agent'} is connected.`)
  const { sessionId } = await agent.request('session/new', { cwd: process.cwd(), mcpServers: [] })
  const { stopReason } = await agent.request('session/prompt', {
    sessionId,
    prompt: [{ type: 'text', text: 'Correct the spelling in greeting.txt.' }],
  })
  console.log(`\n${stopReason}`)
})
program.stdin.end()
const [code] = (await once(program, 'exit')) as [number]
console.log(`The agent has ended (${code}).`)
