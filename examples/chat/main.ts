// A chat page: streaming, tool calls, approvals, questions, a plan, tasks, queue and steering.
//   npm run example -- chat              prints the address of the page
//   THINHARNESS_MODEL=anthropic:claude-sonnet-5 npm run example -- chat
// The page can be reloaded in the middle of an answer, opened twice, and lose its connection: everything is in the log.
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { serve } from '@hono/node-server'
import { build } from 'esbuild'
import { Sessions } from 'thinharness/session'
import { sqliteLog } from 'thinharness/store/sqlite'
import { createHandlers, localOnly } from 'thinharness/ui'
import { shop } from './shop.js'

const log = sqliteLog('chat.db')
const modes = shop()
const sessions = new Sessions({ log, modes, defaultMode: 'chat' })
const { events, requests } = createHandlers({ sessions, authorize: localOnly })

const page = new URL('./', import.meta.url)
const { outputFiles } = await build({
  entryPoints: [fileURLToPath(new URL('page/page.tsx', page))],
  ...{ bundle: true, minify: true, format: 'esm', target: 'es2022', jsx: 'automatic', tsconfigRaw: {}, write: false },
})
const FILES: Readonly<Record<string, readonly [type: string, body: Uint8Array]>> = {
  '/': ['text/html', await readFile(new URL('page.html', page))],
  '/page.css': ['text/css', await readFile(new URL('page.css', page))],
  '/page.js': ['text/javascript', outputFiles[0]?.contents ?? new Uint8Array()],
}

async function answer(request: Request): Promise<Response> {
  const { pathname } = new URL(request.url)
  if (pathname.startsWith('/api/')) return pathname.endsWith('/events') ? events(request) : requests(request)
  const [type, body] = FILES[pathname] ?? []
  if (type === undefined) return new Response('Not found', { status: 404 })
  const headers = {
    'content-type': `${type}; charset=utf-8`,
    'content-security-policy': "default-src 'self'; img-src 'self' data:",
  }
  return new Response(body as Uint8Array<ArrayBuffer>, { headers })
}

const stopped = new Promise<void>((resolve) => {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve())
})
const place = { hostname: '127.0.0.1', port: Number(process.env['PORT'] ?? 8080) }
const server = serve({ fetch: answer, ...place }, ({ port }) => console.log(`Open http://127.0.0.1:${port}/`))
await stopped
server.close()
if ('closeAllConnections' in server) server.closeAllConnections()
await sessions.close()
for (const mode of Object.values(modes)) await mode.close()
await log.close()
