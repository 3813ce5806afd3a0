import { z } from 'zod'
import { defineTool } from 'thinharness'
import type { Harness, HarnessOptions, LogStore, ToolSpec } from 'thinharness'
import { Sessions, submitPlan } from 'thinharness/session'
import type { Chat, Modes, SessionsOptions } from 'thinharness/session'
import { ScriptedModel } from 'thinharness/testing'
import { harnessOf } from '../harness/support.js'
import { gate, processLog } from './support.js'

/** A program: what a deploy changes. */
export interface Program {
  readonly modes: Readonly<Record<string, HarnessOptions>>
  readonly options: Partial<SessionsOptions>
}

/** Which harness has run a tool, and in which run. */
export interface Ran {
  readonly mode: string
  readonly tool: string
  readonly runId: string
}

const OTHER = 'other'

const NUMBER = { type: 'object', properties: { n: { type: 'number' } } }
const BEFORE = { settings: z.object({ theme: z.string() }) }

/** Tools whose calls never end when `started` is given: the process dies in them. */
function tools(started: () => void): readonly ToolSpec[] {
  const endless = (): Promise<never> => {
    started()
    return new Promise(() => undefined)
  }
  const make = (name: string, options: object): ToolSpec =>
    defineTool({
      name,
      description: `Does ${name}.`,
      parameters: NUMBER,
      handler: () => `${name} done`,
      ...options,
    })
  const pay = make('pay', { requiresApproval: true })
  return [
    make('work', { annotations: { idempotent: true }, handler: endless }),
    make('write', { handler: endless }),
    pay,
    make('ask', {
      handler: (_args: unknown, context: Parameters<ToolSpec['call']>[1]) =>
        context.ask({ question: 'How many?' }, z.number()),
    }),
    make('delegate', {
      onUnknownOutcome: 'retry',
      handler: async (_args: unknown, context: Parameters<ToolSpec['call']>[1]) =>
        (await context.spawn({ prompt: 'Help.', key: 'one', agentName: 'helper', tools: [pay] }).result).text,
    }),
    make('background', {
      onUnknownOutcome: 'retry',
      handler(_args: unknown, context: Parameters<ToolSpec['call']>[1]) {
        const { result } = context.spawn({
          prompt: 'Work.',
          key: 'later',
          agentName: 'worker',
          tools: [pay],
          background: true,
        })
        result.catch(() => undefined)
        return 'begun'
      },
    }),
  ]
}

type Phase = (model: ScriptedModel, chat: () => Promise<Chat>, started: Promise<void>) => Promise<void>

/** Sends a message whose run stays in a call of this tool, or waits for people because of it. */
function inCall(name: string, isRunning: boolean, behind = false): Phase {
  return async (model, open, started) => {
    model.calls(name, { n: 1 })
    if (name === 'delegate' || name === 'background') model.calls('pay', { n: 1 })
    model.always('Said.')
    const chat = await open()
    await chat.send('First.', { messageId: 'first' })
    await (isRunning ? started : chat.whenIdle())
    if (behind) await chat.send('Behind.', { messageId: 'behind' })
  }
}

/** What a conversation is doing when its process ends. */
export const PHASES: Readonly<Record<string, Phase>> = {
  'runs an idempotent tool': inCall('work', true),
  'runs a tool with an effect, with a queue': inCall('write', true, true),
  'waits for an approval': inCall('pay', false),
  'waits for an approval, with a queue': inCall('pay', false, true),
  'waits for an answer': inCall('ask', false),
  'has a child run that waits': inCall('delegate', false),
  'has a child run in the background': inCall('background', false),
  'waits for a plan': inCall('submit_plan', false),
  'has a queue that is held': async (model, open, started) => {
    model.calls('work', { n: 1 }).always('Said.')
    const chat = await open()
    await chat.send('First.', { messageId: 'first' })
    await started
    await chat.send('Behind.', { messageId: 'behind' })
    await chat.cancel()
  },
  'is idle': async (model, open) => {
    model.always('Said.')
    await (
      await (await open()).send('First.', { messageId: 'first' })
    ).done
  },
}

/** The conversation `t1` as the process leaves it. */
export async function conversationIn(phase: Phase, log: LogStore, isKilled: boolean): Promise<void> {
  const started = gate()
  const dying = processLog(log)
  const model = new ScriptedModel()
  const review = harnessOf({
    model,
    tools: tools(started.open),
    use: [submitPlan({ then: OTHER })],
    instructions: 'Review.',
  })
  const other = harnessOf({ model: new ScriptedModel().always('Other.') })
  const sessions = new Sessions<Modes>({ log: dying.log, modes: { review, [OTHER]: other }, ...BEFORE })
  let chat: Chat | undefined
  const open = async (): Promise<Chat> => {
    chat = await sessions.open('t1')
    await chat.set({ theme: 'pink' })
    return chat
  }
  await phase(model, open, started.opened)
  if (isKilled || chat?.phase === 'running') await dying.kill()
  else await sessions.close()
}

type Change = (program: Program) => Program

const inReview =
  (change: (options: HarnessOptions) => HarnessOptions): Change =>
  (program) => ({
    ...program,
    modes: { ...program.modes, review: change(program.modes['review'] ?? {}) },
  })
const eachTool = (change: (tool: ToolSpec) => ToolSpec): Change =>
  inReview((options) => ({ ...options, tools: (options.tools ?? []).map((each) => change(each)) }))

/** A deploy that changes one thing. */
export const DEPLOYS: Readonly<Record<string, Change>> = {
  nothing: (program) => program,
  'descriptions of tools': eachTool((tool) => ({ ...tool, description: `${tool.description} Well.` })),
  'an optional argument': eachTool((tool) => ({
    ...tool,
    parameters: { type: 'object', properties: { n: { type: 'number' }, how: { type: 'string' } } },
  })),
  'stricter arguments': eachTool((tool) => ({
    ...tool,
    parameters: { ...NUMBER, properties: { n: { type: 'number' }, who: { type: 'string' } }, required: ['who'] },
  })),
  'no tools': inReview((options) => ({ ...options, tools: [], use: [] })),
  'no approval': eachTool((tool) => ({ ...tool, requiresApproval: false })),
  'a mode is gone': ({ modes: { review: _, ...modes }, options }) => ({ modes, options }),
  'a mode has another name': ({ modes: { review, ...modes }, options }) => ({
    modes: { ...modes, check: review ?? {} },
    options,
  }),
  'stricter settings': ({ modes, options }) => ({
    modes,
    options: {
      ...options,
      settings: z.strictObject({ theme: z.enum(['dark']).default('dark'), size: z.number().default(1) }),
    },
  }),
  instructions: inReview((options) => ({ ...options, instructions: 'Review well.' })),
  'a model that is not there': inReview(({ model: _, ...options }) => options),
  '`deps` that throw': inReview((options) => ({
    ...options,
    deps: () => {
      throw new TypeError('No database.')
    },
  })),
  'configPolicy: same': ({ modes, options }) => ({ modes, options: { ...options, configPolicy: 'same' } }),
  'no tools, and configPolicy: any': (program) => {
    const { modes, options } = inReview((each) => ({ ...each, tools: [], use: [] }))(program)
    return { modes, options: { ...options, configPolicy: 'any' } }
  },
}

/** The sessions of the next process, and what their tools have done. */
export function deployed(change: Change, log: LogStore): { readonly sessions: Sessions; readonly ran: readonly Ran[] } {
  const ran: Ran[] = []
  const model = (): ScriptedModel => new ScriptedModel().calls('erase', { n: 1 }).always('On.')
  const { modes, options } = change({
    modes: {
      review: {
        model: model(),
        tools: tools(() => undefined).map(ending),
        use: [submitPlan({ then: OTHER })],
        instructions: 'Review.',
      },
      [OTHER]: {
        model: model(),
        tools: [defineTool({ name: 'erase', description: 'Erases.', parameters: NUMBER, handler: () => 'erased' })],
      },
    },
    options: BEFORE,
  })
  const noted = ([mode, given]: readonly [string, HarnessOptions]): readonly [string, Harness] => [
    mode,
    harnessOf({
      ...given,
      wrapToolCall: [
        (call, next) => {
          ran.push({ mode, tool: call.tool.name, runId: call.runId })
          return next()
        },
      ],
    }),
  ]
  const harnesses = Object.fromEntries(Object.entries(modes).map(noted))
  const defaultMode = OTHER
  return { sessions: new Sessions<Modes>({ log, modes: harnesses, defaultMode, ...options }), ran }
}

/** Calls of the next process end. */
function ending(tool: ToolSpec): ToolSpec {
  return tool.name === 'work' || tool.name === 'write'
    ? defineTool({ name: tool.name, description: tool.description, parameters: NUMBER, handler: () => 'done' })
    : tool
}
