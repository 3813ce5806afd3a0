import { onTestFinished } from 'vitest'
import { z } from 'zod'
import { memoryLog } from 'thinharness'
import { Sessions } from 'thinharness/session'
import type { ScriptedModel } from 'thinharness/testing'
import { createHandlers } from 'thinharness/ui'
import type { HandlerOptions, Handlers } from 'thinharness/ui'
import { harnessOf, tool } from '../../../harness/support.js'

export type Kind = 'sessions' | 'harness'

/** Handlers of an agent with a tool, one that needs an approval and one that asks a question. */
export function served(
  kind: Kind,
  model: ScriptedModel,
  options: Omit<HandlerOptions, 'sessions' | 'harness' | 'log'> = {},
): Handlers {
  const log = memoryLog()
  const tools = [
    tool('look', () => 'seen'),
    tool('pay', () => 'paid', { requiresApproval: true }),
    tool('ask', (_: unknown, { ask }) => ask({ question: 'Which color?' }, z.string())),
  ]
  if (kind === 'harness') {
    const harness = harnessOf({ model, tools, log })
    onTestFinished(() => harness.close())
    return createHandlers({ harness, log, ...options })
  }
  const sessions = new Sessions({ log, harness: harnessOf({ model, tools }) })
  onTestFinished(() => sessions.close())
  return createHandlers({ sessions, ...options })
}
