import { setTimeout as sleep } from 'node:timers/promises'
import { defineTool, ModelRetry } from 'thinharness'
import type { ToolContext, ToolOptions, ToolSpec } from 'thinharness'
import type { Reconciliation } from '#core/tools/tool-spec.js'
import { z } from 'zod'
import type { Counter } from './counter.js'
import type { Agents } from './scenario.js'

/** The tools whose effect may happen once and never twice. */
export const ONCE = new Set(['pay', 'wire', 'mail', 'step', 'approve', 'edited', 'ask', 'wizard'])

const NUMBER = z.object({ n: z.number().default(0) })
const NAMES = z.object({ agents: z.array(z.string()) })

/** A pause in which the process can be killed. */
function moment(): Promise<void> {
  return sleep(Math.random() < 0.5 ? 0 : 2)
}

/** The tools of every run, at any depth. Each has its effect between two moments in which the process can be killed. */
export function toolsOf(counter: Counter, agents: Agents): readonly ToolSpec[] {
  const effect = (name: string, options: Partial<ToolOptions<typeof NUMBER>> = {}): ToolSpec =>
    defineTool({
      name,
      description: `Does ${name}.`,
      parameters: NUMBER,
      handler: async ({ n }, { idempotencyKey }) => {
        await moment()
        counter.add({ toolName: name, key: idempotencyKey })
        await moment()
        // Long results make views change.
        return `${name} ${n} ${'and so on '.repeat(n % 100)}`
      },
      ...options,
    })
  const asking = (name: string, questions: number): ToolSpec =>
    effect(name, {
      onUnknownOutcome: 'report',
      handler: async ({ n }, context) => {
        let given = 0
        for (let question = 0; question < questions; question++)
          given = (await context.ask({ n, question }, z.number())) + 1
        await moment()
        counter.add({ toolName: name, key: context.idempotencyKey })
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
    effect('flaky', { annotations: { idempotent: true }, handler: flaky }),
    asking('ask', 1),
    asking('wizard', 2),
  ]
  const all: readonly ToolSpec[] = [...tools, delegateTool(agents, () => all), leaveTool(agents, () => all)]
  return all
}

async function flaky({ n }: z.infer<typeof NUMBER>): Promise<string> {
  await moment()
  if (n % 3 === 0) throw new ModelRetry('Try another number.')
  return `flaky ${n}`
}

/** Starts other agents, all at once, each in a run of its own with the same tools, and waits for them. */
function delegateTool(agents: Agents, tools: () => readonly ToolSpec[]): ToolSpec {
  return defineTool({
    name: 'delegate',
    description: 'Has other agents work.',
    parameters: NAMES,
    onUnknownOutcome: 'retry',
    handler: async (args, context) => {
      const runs = known(args.agents, agents).map((name) => context.spawn(childOptions(name, tools())))
      const results = await Promise.all(runs.map(({ result }) => result))
      return results.map(({ text }) => text).join(', ')
    },
  })
}

/** Starts other agents in the background. */
function leaveTool(agents: Agents, tools: () => readonly ToolSpec[]): ToolSpec {
  return defineTool({
    name: 'leave',
    description: 'Leaves other agents at work.',
    parameters: NAMES,
    onUnknownOutcome: 'retry',
    handler: (args, context: ToolContext) => {
      const names = known(args.agents, agents)
      for (const name of names) context.spawn({ ...childOptions(name, tools()), background: true })
      return `left ${names.join(', ')}`
    },
  })
}

function known(names: readonly string[], agents: Agents): readonly string[] {
  return names.filter((name) => name in agents)
}

function childOptions(name: string, tools: readonly ToolSpec[]) {
  return { prompt: name, key: name, agentName: name, tools }
}

/** Looks up in the world if a call took effect. */
function reconciled(counter: Counter, key: string): Reconciliation {
  return counter.has(key) ? { outcome: 'happened', result: 'wired before' } : { outcome: 'did_not_happen' }
}
