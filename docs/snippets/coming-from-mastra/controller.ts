import { Harness } from 'thinharness'
import { policy } from 'thinharness/policy'
import { askUser, Sessions, submitPlan, tasks } from 'thinharness/session'
import type { ChatSnapshot } from 'thinharness/session'
import { sqliteLog } from 'thinharness/store/sqlite'
import { bash } from 'thinharness/tools'
import { z } from 'zod'

// What a controller shares between its modes is a plain object.
const shared = { model: 'openai:gpt-5.5', root: '.', use: [tasks()] }
const plan = new Harness({
  ...shared,
  instructions: 'Plan the change. Change nothing.',
  builtinTools: ['read', 'search', 'list', 'glob'],
  tools: [askUser(), submitPlan({ then: 'build' })],
})
const build = new Harness({ ...shared, instructions: 'Carry the plan out.', tools: [bash(), askUser()] })

export const sessions = new Sessions({
  log: sqliteLog('agent.db'),
  modes: { plan, build },
  settings: z.object({ theme: z.string().default('dark') }),
  policy: policy(
    [
      { decision: 'allow', category: 'read' },
      { decision: 'deny', tool: 'bash', command: 'rm *' },
    ],
    { default: 'ask' },
  ),
})

/** The latest conversation of a project, as it is drawn on a screen. */
export async function show(resourceId: string, draw: (snapshot: ChatSnapshot) => void, signal?: AbortSignal) {
  const mine = sessions.for({ resourceId })
  const chat = (await mine.latest()) ?? (await mine.create())
  for await (const event of chat.events({ signal })) {
    draw(chat.snapshot)
    if (event.kind === 'approval_requested') console.log('Waiting:', ...event.items.map(({ toolName }) => toolName))
  }
}
