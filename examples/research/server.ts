// An MCP server over stdio: the archive of a tea society. Any client can start it; yours may be in another language.
import { Harness } from 'thinharness'
import { serveMcp } from 'thinharness/mcp'
import { find } from './archive.js'

await using harness = new Harness({ builtinTools: [], tools: [find] })
const serving = await serveMcp(harness, { transport: 'stdio', name: 'archive', tools: [find] })
await serving.closed
