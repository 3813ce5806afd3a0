// A coding agent for editors that speak the Agent Client Protocol. An editor starts it as a program.
import { fileLog, Harness } from 'thinharness'
import { serveAcp } from 'thinharness/acp'
import { Sessions } from 'thinharness/session'

await using harness = new Harness({ root: '.', builtinTools: ['read', 'search', 'edit'] })
await using sessions = new Sessions({ log: fileLog('.sessions'), harness })
const serving = await serveAcp(sessions, { agent: { name: 'coder', title: 'Coder', version: '1.0.0' } })
// Goes to standard error: standard output belongs to the protocol.
console.log(`The agent uses the model ${process.env['THINHARNESS_MODEL'] ?? '(none)'}.`)
await serving.closed
