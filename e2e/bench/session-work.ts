// One measurement of `npm run bench:sessions`: `<kind> <store> <place> [threads]`. Prints its figures as JSON.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, statSync } from 'node:fs'
import { createServer, request, Agent } from 'node:http'
import { join } from 'node:path'
import { fileLog, Harness, memoryLog } from 'thinharness'
import type { AssistantEntry, LogStore, Model } from 'thinharness'
import { openaiCompatible } from 'thinharness/providers'
import { Sessions } from 'thinharness/session'
import { textOfSize, threadShapes } from './thread-shapes.js'
import { NO_TOKENS } from './tokens.js'

export interface PlayFigures {
  readonly turns: number
  readonly contentBytes: number
  /** Of tables and files, without indexes and write-ahead logs; null in memory. */
  readonly storedBytes: number | null
  readonly cpuMs: number
}

/** CPU in ms. */
interface Compared {
  readonly sessionMs: number
  readonly postMs: number
}

export interface LateFigures {
  /** A message of a short thread, and the run of the same length without a thread, both without HTTP. */
  readonly message: number
  readonly run: number
  readonly early: Compared
  readonly late: Compared
  readonly openMs: number
}

type Opened = { readonly log: LogStore; readonly storedBytes: () => Promise<number | null> }

const REPLY = textOfSize(600, 7)
const PROMPT = textOfSize(400, 8)
const usage = {
  ...{ ...NO_TOKENS, inputTokens: 100, outputTokens: 100 },
  ...{ cacheReadTokens: null, cacheWriteTokens: null, reasoningTokens: null },
}

async function openStore(store: string, place: string): Promise<Opened> {
  if (store === 'memory') return { log: memoryLog(), storedBytes: () => Promise.resolve(null) }
  if (store === 'file') return { log: fileLog(place), storedBytes: () => Promise.resolve(bytesOfFiles(place)) }
  if (store === 'sqlite') {
    const { sqliteLog } = await import('thinharness/store/sqlite')
    return { log: sqliteLog(join(place, 'runs.db')), storedBytes: () => bytesOfSqlite(join(place, 'runs.db')) }
  }
  const { postgresLog } = await import('thinharness/store/postgres')
  const schema = `bench_${process.pid}`
  return {
    log: postgresLog({ connectionString: place, schema }),
    storedBytes: () => bytesOfPostgres(place, schema),
  }
}

function bytesOfFiles(folder: string): number {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0)
}

async function bytesOfSqlite(file: string): Promise<number> {
  const { DatabaseSync } = await import('@photostructure/sqlite')
  const database = new DatabaseSync(file)
  database.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  const row = database
    .prepare(
      "SELECT sum(pgsize) AS bytes FROM dbstat WHERE aggregate = TRUE AND name NOT IN (SELECT name FROM sqlite_schema WHERE type = 'index')",
    )
    .get() as { readonly bytes: number } | undefined
  database.close()
  return row?.bytes ?? 0
}

async function bytesOfPostgres(connectionString: string, schema: string): Promise<number> {
  const { default: pg } = await import('pg')
  const client = new pg.Client({ connectionString })
  await client.connect()
  const sql = `SELECT sum(pg_table_size(c.oid)) AS bytes FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'r' AND n.nspname = $1`
  const { rows } = await client.query<{ bytes: string }>(sql, [schema])
  await client.query(`DROP SCHEMA "${schema}" CASCADE`)
  await client.end()
  return Number(rows[0]?.bytes)
}

/** A model that replies at once. */
function modelOf(replyTo: (prompt: string) => string): Model {
  return {
    ...{ provider: 'bench', id: 'bench', capabilities: {} },
    openSession: () => ({
      turn: (transcript) => {
        const last = transcript.at(-1)
        const part = last?.role === 'user' ? last.content[0] : undefined
        const text = replyTo(part?.type === 'text' ? part.text : '')
        const entry: AssistantEntry = {
          ...{ id: `e${transcript.length + 1}`, at: new Date().toISOString(), role: 'assistant', usage },
          ...{ parts: [{ type: 'text', text }], provider: 'bench', model: 'bench', finishReason: 'stop' },
        }
        return Promise.resolve({ entry })
      },
    }),
  }
}

function cpuMs(since?: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(since)
  return (user + system) / 1000
}

async function play(store: string, place: string, count: number): Promise<PlayFigures> {
  const { log, storedBytes } = await openStore(store, place)
  const model = modelOf((prompt) => textOfSize(Number.parseInt(prompt, 10), prompt.length))
  const harness = new Harness({ model, builtinTools: [] })
  const sessions = new Sessions({ log, harness })
  const shapes = threadShapes(count)
  let [turns, contentBytes] = [0, 0]
  const begun = process.cpuUsage()
  const playThread = async (index: number): Promise<void> => {
    const sizes = shapes[index]?.sizes ?? []
    const chat = await sessions.open(`t${index}`)
    for (let at = 0; at < sizes.length; at += 2) {
      const [said = 0, replied = 0] = sizes.slice(at, at + 2)
      const { done } = await chat.send(`${replied} ${textOfSize(said, at)}`)
      const { status } = await done
      if (status !== 'completed') throw new Error(`A message ended as ${status}.`)
      turns += 1
      contentBytes += said + replied
    }
  }
  let next = 0
  const lane = async (): Promise<void> => {
    while (next < count) await playThread(next++)
  }
  await Promise.all(Array.from({ length: 8 }, lane))
  const used = cpuMs(begun)
  await sessions.close()
  await harness.close()
  const stored = await storedBytes()
  await closeLog(log)
  return { turns, contentBytes, storedBytes: stored, cpuMs: used }
}

async function closeLog(log: LogStore & { readonly close?: () => Promise<void> }): Promise<void> {
  await log.close?.()
}

/** A message of a thread, and the run of the same length that continues another by reference; both in memory. */
async function messageAndRun(log: LogStore): Promise<{ readonly message: number; readonly run: number }> {
  const harness = new Harness({ model: modelOf(() => REPLY), builtinTools: [], log })
  const sessions = new Sessions({ log, harness })
  const runs = async (name: string, threads: number): Promise<void> => {
    for (let thread = 0; thread < threads; thread += 1) {
      let before: string | null = null
      for (let turn = 0; turn < 5; turn += 1) {
        const runId = `${name}.${thread}.${turn}`
        const metadata = { conversation_id: `${name}.${thread}` }
        await harness.run(PROMPT, { runId, metadata, history: before === null ? null : { runId: before } })
        before = runId
      }
    }
  }
  const messages = async (name: string, threads: number): Promise<void> => {
    for (let thread = 0; thread < threads; thread += 1) {
      const chat = await sessions.open(`${name}.${thread}`)
      for (let turn = 0; turn < 5; turn += 1) await (await chat.send(PROMPT)).done
    }
  }
  const [run, message]: [number[], number[]] = [[], []]
  for (let round = 0; round < 6; round += 1) {
    const runsBegun = process.cpuUsage()
    await runs(`r${round}`, 60)
    run.push(cpuMs(runsBegun) / 300)
    const messagesBegun = process.cpuUsage()
    await messages(`m${round}`, 60)
    message.push(cpuMs(messagesBegun) / 300)
  }
  await sessions.close()
  await harness.close()
  // The first rounds warm up.
  const least = (values: readonly number[]): number => Math.min(...values.slice(2))
  return { message: least(message), run: least(run) }
}

/** CPU of a message at this place of a thread, and of a bare POST of the same history. */
async function compared(log: LogStore, url: string, place: number): Promise<Compared> {
  const harness = new Harness({ model: openaiCompatible('bench', { baseUrl: url }), builtinTools: [], log })
  const sessions = new Sessions({ log, harness })
  const history = (length: number): { role: string; content: string }[] =>
    Array.from({ length }, (_, index) => ({
      role: index % 2 === 0 ? 'user' : 'assistant',
      content: index % 2 === 0 ? PROMPT : REPLY,
    }))
  const agent = new Agent({ keepAlive: true })
  const times: { session: number[]; post: number[] } = { session: [], post: [] }
  const count = place <= 10 ? 40 : 4
  for (let round = 0; round < count; round += 1) {
    const chat = await sessions.open(`p${place}.${round}`)
    for (let turn = 0; turn < place / 2 - 5; turn += 1) await (await chat.send(PROMPT)).done
    const begun = process.cpuUsage()
    for (let turn = 0; turn < 5; turn += 1) await (await chat.send(PROMPT)).done
    times.session.push(cpuMs(begun) / 5)
    const messages = history(place - 10)
    const bare = process.cpuUsage()
    for (let turn = 0; turn < 5; turn += 1) {
      messages.push({ role: 'user', content: PROMPT })
      messages.push({ role: 'assistant', content: await post(`${url}/chat/completions`, agent, messages) })
    }
    times.post.push(cpuMs(bare) / 5)
  }
  agent.destroy()
  await sessions.close()
  await harness.close()
  const least = (values: readonly number[]): number => [...values].sort((a, b) => a - b)[values.length >> 2] ?? 0
  return { sessionMs: least(times.session), postMs: least(times.post) }
}

function post(url: string, agent: Agent, messages: readonly object[]): Promise<string> {
  const body = Buffer.from(JSON.stringify({ model: 'bench', messages, stream: true }))
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', 'content-length': body.length }
    const sent = request(url, { method: 'POST', agent, headers }, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (piece: string) => (text += piece))
      response.on('end', () => {
        const [line = ''] = text.split('\n\n')
        const { choices } = JSON.parse(line.slice(6)) as { choices: readonly { delta: { content: string } }[] }
        resolve(choices[0]?.delta.content ?? '')
      })
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

async function late(store: string, place: string): Promise<LateFigures> {
  const { log, storedBytes } = await openStore(store, place)
  const { message, run } = await messageAndRun(log)
  const server = spawn(process.execPath, [new URL(import.meta.url).pathname, 'serve'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const [line] = (await once(server.stdout, 'data')) as [Buffer]
  const url = line.toString().trim()
  const early = await compared(log, url, 10)
  const after = await compared(log, url, 500)
  server.stdin.end()
  const openMs: number[] = []
  for (let round = 0; round < 5; round += 1) {
    const sessions = new Sessions({ log, harness: new Harness({ builtinTools: [] }) })
    const begun = performance.now()
    await sessions.open('p500.0')
    openMs.push(performance.now() - begun)
    await sessions.close()
  }
  if (store === 'postgres') await storedBytes()
  await closeLog(log)
  return { message, run, early, late: after, openMs: openMs.sort((a, b) => a - b)[2] ?? 0 }
}

/** A provider that answers each request with the same stream. */
function serve(): void {
  const chunk = (fields: object): string =>
    `data: ${JSON.stringify({ id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'bench', ...fields })}\n\n`
  const body = [
    chunk({ choices: [{ index: 0, delta: { role: 'assistant', content: REPLY }, finish_reason: null }] }),
    chunk({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }),
    chunk({ choices: [], usage: { prompt_tokens: 100, completion_tokens: 100, total_tokens: 200 } }),
    'data: [DONE]\n\n',
  ].join('')
  const server = createServer((incoming, response) => {
    incoming.resume().on('end', () => response.writeHead(200, { 'content-type': 'text/event-stream' }).end(body))
  })
  server.keepAliveTimeout = 0
  server.listen(0, '127.0.0.1', () => {
    const address = server.address()
    if (address !== null && typeof address === 'object') console.log(`http://127.0.0.1:${address.port}/v1`)
  })
  process.stdin.resume().on('end', () => process.exit())
}

const [kind, store = 'memory', place = '', count = '1000'] = process.argv.slice(2)
if (kind === 'serve') serve()
else if (kind === 'play') process.stdout.write(JSON.stringify(await play(store, place, Number(count))))
else if (kind === 'late') process.stdout.write(JSON.stringify(await late(store, place)))
