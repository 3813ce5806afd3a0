import { defineExtension, Harness } from 'thinharness'
import type { StreamEvent } from 'thinharness'
import { Sessions } from 'thinharness/session'
import { sqliteLog } from 'thinharness/store/sqlite'
import { createHandlers } from 'thinharness/ui'
import { userOf } from './user.js'

const KEY = /sk-[\w-]{8,}/g
const hideKeys = defineExtension({
  name: 'hide_keys',
  redact: (event) => JSON.parse(JSON.stringify(event).replaceAll(KEY, '[key]')) as StreamEvent,
})

const harness = new Harness({
  model: 'openai:gpt-5.5',
  builtinTools: [],
  use: [hideKeys],
  limits: { modelRequests: 20, costUsd: 0.5, timeMs: 120_000 },
})
const sessions = new Sessions({
  ...{ harness, log: sqliteLog('chat.db') },
  limits: { queuedMessages: 5, fileBytes: 1_000_000, files: 3 },
})

/** Handlers for people who are not known. */
export const handlers = createHandlers({
  sessions,
  authorize(request, { action }) {
    const user = userOf(request)
    // Customers do not approve their own refunds.
    if (user === '' || action === 'answer') return null
    return { resourceId: user, by: user, metadata: { plan: 'free' } }
  },
  maxBodyBytes: 1_000_000,
})
