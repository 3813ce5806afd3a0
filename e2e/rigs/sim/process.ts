import { defineTool, Harness } from 'thinharness'
import type { PendingItem, ToolContext, ToolOptions, ToolSpec } from 'thinharness'
import { Sessions } from 'thinharness/session'
import type { ItemAnswer, Modes } from 'thinharness/session'
import { z } from 'zod'
import { between } from '../crash/random.js'
import { never, SimLog } from './sim-log.js'
import type { LogMeans } from './sim-log.js'
import { SimModel } from './sim-model.js'

/** What all processes of a life share. */
export interface World extends LogMeans {
  readonly providerFails: number
  /** Effects by the key of their call. */
  readonly effects: Map<string, number>
  readonly nextCall: () => number
  /** Something answers in place of people, sometimes. */
  readonly hasResponder: boolean
}

const NUMBER = z.object({ n: z.number() })
/** The tools of every run. */
export const TOOL_NAMES = ['look', 'write', 'mail', 'pay', 'ask', 'slow', 'stubborn', 'delegate', 'background']
/** Those with an effect, which may happen once. */
export const EFFECTS = new Set(['write', 'mail', 'pay', 'ask', 'stubborn'])

/** A simulated process: sessions with harnesses of their own, and its connection to the store. */
export class SimProcess {
  readonly name: string
  readonly log: SimLog
  readonly sessions: Sessions
  #isClosed = false
  #isCalm = false
  readonly #models: readonly SimModel[]

  constructor(world: World, name: string) {
    this.name = name
    this.log = new SimLog(world, name)
    const { time, random, nextCall, providerFails: fails } = world
    const model = (id: string): SimModel => new SimModel(id, { time, random, nextCall, fails })
    const [plan, build, other] = [model('plan'), model('build'), model('other')]
    this.#models = [plan, build, other]
    const tools = toolsOf(world, this.log)
    const harnessOf = (each: SimModel): Harness =>
      new Harness({ model: each, tools, builtinTools: [], limits: { modelRequests: 40 } })
    this.sessions = new Sessions<Modes>({
      log: this.log,
      modes: { plan: harnessOf(plan), build: harnessOf(build) },
      limits: { queuedMessages: 6 },
      ...(world.hasResponder && { responder: (item) => respond(world, item) }),
      resolveModel: (reference) => {
        if (reference === 'sim:other' || this.#isCalm) return other
        throw new Error('There is no such model.')
      },
    })
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  close(): Promise<void> {
    this.#isClosed = true
    return this.sessions.close()
  }

  /** Store and models answer at once from now on. */
  calm(): void {
    this.#isCalm = true
    this.log.calm()
    for (const model of this.#models) model.calm()
  }
}

/** The time that a tool takes, and its effect on the world. */
function effectsOf(
  { time, random, effects }: World,
  log: SimLog,
): {
  readonly moment: () => Promise<void>
  readonly effect: (key: string) => Promise<void>
} {
  const moment = async (): Promise<void> => {
    if (random() < 0.5) await time.sleep(between(random, 1, 60))
    if (log.isDead) await never()
  }
  const effect = async (key: string): Promise<void> => {
    await moment()
    effects.set(key, (effects.get(key) ?? 0) + 1)
    await moment()
  }
  return { moment, effect }
}

function toolsOf(world: World, log: SimLog): readonly ToolSpec[] {
  const { time, random } = world
  const { moment, effect } = effectsOf(world, log)
  const toolOf = (name: string, options: Partial<ToolOptions<typeof NUMBER>> = {}): ToolSpec =>
    defineTool({
      name,
      description: `Does ${name}.`,
      parameters: NUMBER,
      handler: async (_args, { idempotencyKey }) => {
        await effect(idempotencyKey)
        if (random() < 0.05) throw new Error('It failed.')
        return `${name} done`
      },
      ...options,
    })
  const all: ToolSpec[] = [
    toolOf('look', { annotations: { readOnly: true }, handler: () => moment().then(() => 'seen') }),
    toolOf('write', { onUnknownOutcome: 'pause' }),
    toolOf('mail'),
    toolOf('pay', { requiresApproval: true, onUnknownOutcome: 'pause' }),
    toolOf('ask', {
      handler: async (_args, context) => {
        const given = await context.ask({ question: 'How many?' }, z.number())
        await effect(context.idempotencyKey)
        return `asked ${given}`
      },
    }),
    toolOf('slow', {
      annotations: { readOnly: true },
      handler: (_args, { signal }) =>
        new Promise((resolve, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
          void time.sleep(between(random, 100, 20_000)).then(() => resolve('slow done'))
        }),
    }),
    toolOf('stubborn', {
      handler: async (_args, { idempotencyKey }) => {
        await effect(idempotencyKey)
        await time.sleep(12_000)
        if (log.isDead) await never()
        return 'at last'
      },
    }),
  ]
  return [...all, ...spawning(toolOf, all)]
}

type MakeTool = (name: string, options: Partial<ToolOptions<typeof NUMBER>>) => ToolSpec

/** Tools that start child runs: one or two, which start some of their own, and one that works in the background. */
function spawning(toolOf: MakeTool, tools: readonly ToolSpec[]): readonly ToolSpec[] {
  const child = (context: ToolContext, key: string, offered: readonly ToolSpec[]): Promise<string> => {
    const { result } = context.spawn({ prompt: 'Help.', key, agentName: 'helper', tools: offered })
    return result.then(({ text }) => text)
  }
  const nested = toolOf('nested', {
    onUnknownOutcome: 'retry',
    handler: (_args, context) => child(context, 'deep', tools),
  })
  const delegate = toolOf('delegate', {
    onUnknownOutcome: 'retry',
    handler: async (_args, context) => {
      const keys = Number(context.callId.at(-1)) % 3 === 0 ? ['one', 'two'] : ['one']
      return (await Promise.all(keys.map((key) => child(context, key, [...tools, nested])))).join(' ')
    },
  })
  const background = toolOf('background', {
    onUnknownOutcome: 'retry',
    handler: (_args, { spawn }) => {
      const { result } = spawn({ prompt: 'Work.', key: 'later', agentName: 'worker', tools, background: true })
      result.catch(() => undefined)
      return Promise.resolve('begun')
    },
  })
  return [delegate, background]
}

/** What answers in place of people: with an answer, none, an error, or too late. */
async function respond({ random, time }: World, { kind, callId }: PendingItem): Promise<ItemAnswer | null> {
  if (random() < 0.3) await time.sleep(between(random, 1, 90_000))
  if (random() < 0.1) throw new TypeError('It has a mistake.')
  if (random() < 0.3 || kind === 'unknown_outcome') return null
  return kind === 'approval' ? { callId, approved: random() < 0.5 } : { callId, answer: random() < 0.2 ? 'many' : 2 }
}
