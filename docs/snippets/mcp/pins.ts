import { readFile, writeFile } from 'node:fs/promises'
import { mcpHttp } from 'thinharness/mcp'

const pins = JSON.parse(await readFile('mcp-pins.json', 'utf8').catch(() => 'null')) as Record<string, string> | null
await using server = mcpHttp({
  id: 'tickets',
  url: 'https://mcp.example.com/mcp',
  headers: { authorization: `Bearer ${process.env['TICKETS_TOKEN'] ?? ''}` },
  changedTools: 'refuse',
  ...(pins !== null && { pins }),
})

if (pins === null) await writeFile('mcp-pins.json', JSON.stringify(await server.digests()))
