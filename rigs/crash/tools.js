import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'

/** Those of which an effect may be had once and never twice. */
export const ONCE = new Set(['pay', 'wire', 'mail', 'step', 'approve', 'edited', 'ask', 'wizard'])

const parameters = z.object({ n: z.number().optional() })

/** The tools of every run, at any depth. Each does its effect in the middle, between two moments in which it can be killed. */
export function toolsOf({ defineTool, ModelRetry }, counter, agents) {
  const moment = () => sleep(Math.random() < 0.5 ? 0 : 2)
  const effect = (name, beside = {}) =>
    defineTool({
      name,
      description: `Does ${name}.`,
      parameters,
      handler: async ({ n }, { idempotencyKey }) => {
        await moment()
        counter.add(name, idempotencyKey)
        await moment()
        return `${name} ${n}`
      },
      ...beside,
    })
  const asking = (name, questions) =>
    effect(name, {
      onUnknownOutcome: 'report',
      handler: async ({ n }, context) => {
        let given = 0
        for (let question = 0; question < questions; question++)
          given = (await context.ask({ n, question }, z.number())) + 1
        await moment()
        counter.add(name, context.idempotencyKey)
        return `${name} ${n} after ${given}`
      },
    })
  const tools = [
    effect('look', { annotations: { readOnly: true } }),
    effect('put', { annotations: { idempotent: true } }),
    effect('pay'),
    effect('wire', { reconcile: async (key) => reconciled(counter, key) }),
    effect('mail', { onUnknownOutcome: 'pause' }),
    effect('step', { sequential: true }),
    effect('approve', { requiresApproval: ({ n }) => n % 2 === 0, preview: ({ n }) => ({ n }) }),
    effect('edited', { requiresApproval: true }),
    effect('flaky', {
      annotations: { idempotent: true },
      handler: async ({ n }) => {
        await moment()
        if (n % 3 === 0) throw new ModelRetry('Try another number.')
        return `flaky ${n}`
      },
    }),
    asking('ask', 1),
    asking('wizard', 2),
  ]
  const all = [...tools, delegateTool(defineTool, agents, () => all), leaveTool(defineTool, agents, () => all)]
  return all
}

/** Has other agents work, all at once, each in a run of its own with the same tools. */
function delegateTool(defineTool, agents, toolsNow) {
  return defineTool({
    name: 'delegate',
    description: 'Has other agents work.',
    parameters: z.object({ agents: z.array(z.string()) }),
    onUnknownOutcome: 'retry',
    handler: async (args, context) => {
      const known = args.agents.filter((name) => name in agents)
      const runs = known.map((name) => context.spawn({ prompt: name, key: name, agentName: name, tools: toolsNow() }))
      const results = await Promise.all(runs.map(({ result }) => result))
      return results.map(({ text }) => text).join(', ')
    },
  })
}

/** Leaves other agents at work in the background. */
function leaveTool(defineTool, agents, toolsNow) {
  return defineTool({
    name: 'leave',
    description: 'Leaves other agents at work.',
    parameters: z.object({ agents: z.array(z.string()) }),
    onUnknownOutcome: 'retry',
    handler: (args, context) => {
      const known = args.agents.filter((name) => name in agents)
      for (const name of known) {
        context.spawn({ prompt: name, key: name, agentName: name, tools: toolsNow(), background: true })
      }
      return `left ${known.join(', ')}`
    },
  })
}

/** What the world says of a call: it is asked, not guessed. */
function reconciled(counter, key) {
  return counter.has(key) ? { outcome: 'happened', result: 'wired before' } : { outcome: 'did_not_happen' }
}
