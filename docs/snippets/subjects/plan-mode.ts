import { Harness } from 'thinharness'
import { Sessions, submitPlan } from 'thinharness/session'
import { sqliteLog } from 'thinharness/store/sqlite'
import { bash } from 'thinharness/tools'

const shared = { model: 'anthropic:claude-sonnet-5', root: './project' }
const plan = new Harness({
  ...shared,
  instructions: 'Read what you need, then submit a plan. You cannot change anything.',
  builtinTools: ['read', 'search', 'glob', 'list'],
  tools: [submitPlan({ then: 'build' })],
})
const build = new Harness({ ...shared, instructions: 'Carry the plan out.', tools: [bash()] })

export const sessions = new Sessions({ log: sqliteLog('chat.db'), modes: { plan, build }, defaultMode: 'plan' })

/** The plan that waits for a person: its title and Markdown. */
export async function planOf(threadId: string) {
  const chat = await sessions.open(threadId)
  return chat.pending.find(({ toolName }) => toolName === 'submit_plan') ?? null
}

/** Approves the plan, and the same run carries it out; or sends it back with what has to change. */
export async function decidePlan(threadId: string, callId: string, feedback: string | null): Promise<void> {
  const chat = await sessions.open(threadId)
  const answer = feedback === null ? { action: 'approved' } : { action: 'rejected', feedback }
  await chat.answer([{ callId, answer }])
}
