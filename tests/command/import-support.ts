import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { DurableEvent } from 'thinharness'
import { fold } from '#core/loop/apply.js'
import { closedTranscript } from '#core/state/closing.js'
import { readFile } from '#command/import/read-file.js'
import type { ReadSessionFile } from '#command/import/read-file.js'

export const DATA = fileURLToPath(new URL('../data/sessions-of-others/', import.meta.url))

interface Listed {
  readonly file: string
  readonly format: string
  readonly expected: {
    readonly turns: number
    readonly texts: number
    readonly first: string | null
    readonly last: string | null
  }
}

export const LISTED = JSON.parse(readFileSync(join(DATA, 'INDEX.json'), 'utf8')) as readonly Listed[]
export function read(text: string, file = 'session.jsonl'): ReadSessionFile {
  const found = readFile(text, { file, at: '2026-01-02T03:04:05.000Z', root: '/work' })
  if (found === null) throw new Error('The format is not known.')
  return found
}

export function linesOf(...records: readonly unknown[]): string {
  return records.map((record) => JSON.stringify(record)).join('\n')
}

/** The events of the run of a file. */
export function eventsOf({ runs }: ReadSessionFile): readonly DurableEvent[] {
  return runs[0]?.events ?? []
}

export function textsOf(events: readonly DurableEvent[], role: 'user' | 'assistant'): readonly string[] {
  const state = fold(events)
  return (state === undefined ? [] : closedTranscript(state)).flatMap((entry) => {
    if (entry.role !== role) return []
    const parts = entry.role === 'assistant' ? entry.parts : entry.content
    return typeof parts === 'string' ? [parts] : parts.flatMap((part) => (part.type === 'text' ? [part.text] : []))
  })
}

/** A session of Claude Code with a subagent, which stopped before its answer. */
export const CLAUDE = [
  {
    type: 'user',
    sessionId: 's',
    cwd: '/home',
    timestamp: '2026-01-01T00:00:00Z',
    message: { role: 'user', content: 'Fix it' },
  },
  {
    ...{ type: 'assistant', sessionId: 's', timestamp: '2026-01-01T00:00:02Z' },
    message: {
      ...{ id: 'msg_1', role: 'assistant', model: 'claude-sonnet-5' },
      content: [{ type: 'tool_use', id: 'task_1', name: 'Task', input: { prompt: 'Look around' } }],
      usage: { input_tokens: 5, cache_read_input_tokens: 90, cache_creation_input_tokens: 5, output_tokens: 7 },
    },
  },
  {
    ...{ type: 'user', sessionId: 's', isSidechain: true, agentId: 'a1', timestamp: '2026-01-01T00:00:03Z' },
    message: { role: 'user', content: 'Look around' },
  },
  {
    ...{ type: 'assistant', sessionId: 's', isSidechain: true, agentId: 'a1', timestamp: '2026-01-01T00:00:04Z' },
    message: { role: 'assistant', content: [{ type: 'text', text: 'Seen.' }] },
  },
  {
    ...{ type: 'user', sessionId: 's', timestamp: '2026-01-01T00:00:09Z' },
    message: { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'task_1', content: 'Seen.' }] },
  },
]
