import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, onTestFinished } from 'vitest'
import { fileLog, memoryLog } from 'thinharness'
import type { LogRef, LogStore } from 'thinharness'
import { SessionError, Sessions } from 'thinharness/session'
import type { Chat, ChatEvent, Modes, SessionsOptions } from 'thinharness/session'
import { postgresLog } from 'thinharness/store/postgres'
import type { PostgresLog } from 'thinharness/store/postgres'
import { sqliteLog } from 'thinharness/store/sqlite'
import { startPostgres } from '../support/postgres.js'

/** All stores; PostgreSQL only if a server can be started. The server ends after the tests of the file. */
export async function allStores(): Promise<(readonly [string, () => LogStore])[]> {
  const server = await startPostgres()
  const stores: (readonly [string, () => LogStore])[] = [
    ['memory', () => memoryLog()],
    ['file', () => fileLog(temporaryFolder(), { fsync: 'never' })],
    ['SQLite', () => sqliteLog(join(temporaryFolder(), 'runs.db'))],
  ]
  if (server === null) return stores
  afterAll(() => server.stop())
  let count = 0
  return [...stores, ['PostgreSQL', () => closed(postgresLog({ connectionString: server.url, schema: `s${count++}` }))]]
}

/** A log that is closed after the test. */
function closed(log: PostgresLog): PostgresLog {
  onTestFinished(() => log.close())
  return log
}

export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'session-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Sessions that are closed after the test. */
export function sessionsOf<M extends Modes>(options: SessionsOptions<M>): Sessions<M> {
  const sessions = new Sessions<M>(options)
  onTestFinished(() => sessions.close())
  return sessions
}

/** The connection of one process to a log. After `kill` it stores nothing, and its claims are free: as if the process had ended. */
export function processLog(log: LogStore): { readonly log: LogStore; readonly kill: () => Promise<void> } {
  const claims = new Map<string, readonly [LogRef, string]>()
  let isDead = false
  const own: Pick<LogStore, 'append' | 'claim'> = {
    append: (...args) => (isDead ? new Promise(() => undefined) : log.append(...args)),
    claim(ref, owner, ms) {
      if (isDead) return new Promise(() => undefined)
      claims.set(ref.id, [ref, owner])
      return log.claim(ref, owner, ms)
    },
  }
  const connection = new Proxy(log, {
    get(target, name) {
      if (name === 'append' || name === 'claim') return own[name]
      const member: unknown = Reflect.get(target, name)
      return typeof member === 'function' ? (member.bind(target) as unknown) : member
    },
  })
  const kill = async (): Promise<void> => {
    isDead = true
    for (const [ref, owner] of claims.values()) await log.claim(ref, owner, 0)
  }
  return { log: connection, kill }
}

/** The warnings of conversations in this process from now on, until the end of the test. */
export function warnings(): readonly string[] {
  const all: string[] = []
  const note = ({ name, message }: Error): void => {
    if (name === 'SessionWarning') all.push(message)
  }
  process.on('warning', note)
  onTestFinished(() => void process.off('warning', note))
  return all
}

/** A promise with its own resolve. */
export function gate(): { readonly opened: Promise<void>; readonly open: () => void } {
  let open = (): void => undefined
  const opened = new Promise<void>((resolve) => (open = resolve))
  return { opened, open }
}

/** Resolves when an event fits. */
export async function until(chat: Chat, fits: (event: ChatEvent) => boolean): Promise<ChatEvent> {
  const over = new AbortController()
  try {
    for await (const event of chat.events({ signal: over.signal })) if (fits(event)) return event
  } finally {
    over.abort()
  }
  throw new Error('The events ended.')
}

/** The stored texts of a conversation, with their roles. */
export function said(chat: Chat): string[] {
  return chat.snapshot.runs.flatMap(({ prompt, entries }) => [
    `user: ${textOf(prompt)}`,
    ...entries.map((entry) =>
      entry.role === 'user' ? `user: ${textOf(entry.content)}` : `assistant: ${textOf(entry.parts)}`,
    ),
  ])
}

function textOf(parts: readonly { readonly type: string; readonly text?: string }[]): string {
  return parts.map(({ text = '' }) => text).join('')
}

/** The code of a `SessionError`; anything else as text. */
export async function codeOf(promise: Promise<unknown>): Promise<string> {
  const error: unknown = await promise.then(
    () => null,
    (thrown: unknown) => thrown,
  )
  return error instanceof SessionError ? error.code : String(error)
}
