import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { HarnessError, memoryLog } from 'thinharness'
import type { HarnessOptions, LogStore, RunOptions, ToolSpec } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { harnessOf, tool } from '../harness/support.js'

/** What a host's function may do instead of what it should. */
const BAD: Readonly<Record<string, () => unknown>> = {
  'throws an error': () => {
    throw new Error('Boom.')
  },
  'throws a text': () => thrown('boom'),
  'throws nothing': () => thrown(undefined),
  'throws an object whose members throw': () =>
    thrown({
      get message(): string {
        throw new Error('nested')
      },
      toString: () => {
        throw new Error('nested')
      },
    }),
  'rejects with null': () => Promise.resolve().then(() => thrown(null)),
  'gives nothing': () => undefined,
  'gives null': () => null,
  'gives a number': () => 5,
  'gives a text': () => 'x',
  'gives an empty object': () => ({}),
  'gives an empty list': () => [],
  'gives a function': () => () => 1,
  'gives a promise of a number': () => Promise.resolve(5),
  'gives a list of null': () => [null],
  'gives an async iterable of rubbish': () => rubbish(),
}

function thrown(value: unknown): never {
  throw value
}

async function* rubbish(): AsyncGenerator {
  await Promise.resolve()
  yield null
}

type Bad = () => never
type Port = (bad: Bad) => unknown

const model = (): ScriptedModel => new ScriptedModel().calls('act').says('Done.')
const act = (beside: Partial<ToolSpec> = {}): ToolSpec => tool('act', () => 'ok', beside)

function run(options: HarnessOptions, given: RunOptions = {}): Promise<unknown> {
  return harnessOf({ model: model(), tools: [act()], ...options }).run('Go.', given)
}

/** A harness that is used and closed. */
async function closed(options: HarnessOptions): Promise<void> {
  const harness = harnessOf({ model: model(), tools: [act()], ...options })
  await harness.run('Go.')
  await harness.close()
}

/** A log of one run, `run_1`, one of whose methods is bad. */
async function brokenLog(method: string, bad: Bad, tools: readonly ToolSpec[]): Promise<LogStore> {
  const log = memoryLog()
  await harnessOf({ model: model(), tools, log }).run('Go.', { runId: 'run_1' })
  return new Proxy(log, {
    get: (target, name) => {
      const found: unknown = name === method ? bad : Reflect.get(target, name)
      return typeof found === 'function' && name !== method ? (found.bind(target) as unknown) : found
    },
  })
}

const LOG_USES: Readonly<Record<string, (log: LogStore, tools: readonly ToolSpec[]) => unknown>> = {
  run: (log, tools) => run({ log, tools }),
  recover: (log, tools) => harnessOf({ model: model(), log, tools }).recover('run_1'),
  retry: (log, tools) => harnessOf({ model: model(), log, tools }).retry('run_1'),
  resume: (log, tools) =>
    harnessOf({ model: model(), log, tools }).resume('run_1', [{ callId: 'call_1', approved: true }]),
  cancel: (log, tools) => harnessOf({ model: model(), log, tools }).cancel('run_1'),
  follow: (log, tools) => drained(harnessOf({ model: model(), log, tools }).follow('run_1')),
  'a run with its history': (log, tools) => run({ log, tools }, { history: { runId: 'run_1' } }),
  'a run with its id': (log, tools) => run({ log, tools }, { runId: 'run_1', ifExists: 'continue' }),
}

const logPorts = ['append', 'read', 'claim', 'follow', 'inspect', 'list', 'referrers', 'export'].flatMap((method) =>
  Object.entries(LOG_USES).map(([use, work]): [string, Port] => [
    `\`${method}\` of a log, for ${use}`,
    async (bad) => {
      const tools = use === 'resume' || use === 'cancel' ? [act({ requiresApproval: true })] : [act()]
      return work(await brokenLog(method, bad, tools), tools)
    },
  ]),
)

async function drained(items: AsyncIterable<unknown>): Promise<void> {
  for await (const item of items) expect(item).toBeDefined()
}

const trace = { event: () => undefined }
const source = (beside: Readonly<Record<string, unknown>>) =>
  [{ id: 's', required: true, tools: () => Promise.resolve([]), close: () => Promise.resolve(), ...beside }] as never
const extension = (beside: Readonly<Record<string, unknown>>) => [{ name: 'x', ...beside }] as never
const ofModel = (beside: Readonly<Record<string, unknown>>) =>
  ({ provider: 'p', id: 'm', capabilities: {}, ...beside }) as never
const PORTS: readonly [string, Port][] = [
  ...logPorts,
  ...(['run_start', 'user_prompt_submit', 'before_tool_call', 'after_tool_call', 'run_end'] as const).map(
    (event): [string, Port] => [`hook \`${event}\``, (bad) => run({ hooks: [{ event, handler: bad }] })],
  ),
  ...['wrapModelCall', 'wrapToolCall', 'policy', 'notices', 'view', 'redact', 'forRun'].map(
    (member): [string, Port] => [`\`${member}\` of an extension`, (bad) => run({ use: extension({ [member]: bad }) })],
  ),
  ...['wrapModelCall', 'wrapToolCall', 'policy', 'notices', 'view', 'redact'].map((member): [string, Port] => [
    `\`${member}\` of an extension of one run`,
    (bad) => run({ use: extension({ forRun: () => ({ [member]: bad }) }) }),
  ]),
  ['`close` of an extension', (bad) => closed({ use: extension({ close: bad }) })],
  ...['startRun', 'flush'].map((member): [string, Port] => [
    `\`${member}\` of a tracing`,
    (bad) => closed({ tracing: [{ startRun: () => trace, [member]: bad }] }),
  ]),
  ...['event', 'constants', 'within'].map((member): [string, Port] => [
    `\`${member}\` of a trace`,
    (bad) => closed({ tracing: [{ startRun: () => ({ ...trace, [member]: bad }) }] }),
  ]),
  ['`deps`', (bad) => run({ deps: bad })],
  ['the handler of a tool', (bad) => run({ tools: [tool('act', bad)] })],
  ['`requiresApproval` of a tool', (bad) => run({ tools: [act({ requiresApproval: bad })] })],
  ['`reach` of a tool', (bad) => run({ tools: [act({ reach: bad as never })] })],
  ['`outputValidator`', (bad) => run({ outputValidator: bad })],
  ['`tools` of a required server', (bad) => run({ mcpServers: source({ tools: bad }) })],
  ['`tools` of a server', (bad) => run({ mcpServers: source({ required: false, tools: bad }) })],
  ['`close` of a server', (bad) => closed({ mcpServers: source({ close: bad }) })],
  ['`openSession` of a model', (bad) => run({ model: ofModel({ openSession: bad }) })],
  ['`turn` of a model', (bad) => run({ model: ofModel({ openSession: () => ({ turn: bad }) }) })],
  ['`close` of a model', (bad) => closed({ model: Object.assign(model(), { close: bad }) })],
  ['the function of `map`', (bad) => drained(harnessOf({ model: model() }).map([1], bad))],
  ['the events of `replay`', (bad) => harnessOf({ model: model() }).replay({ [Symbol.asyncIterator]: bad })],
  [
    'the events of `replay`, one by one',
    (bad) => harnessOf({ model: model() }).replay({ [Symbol.asyncIterator]: () => ({ next: bad }) }),
  ],
  [
    'the events of `fork`',
    (bad) => harnessOf({ model: model() }).fork({ [Symbol.asyncIterator]: bad }, { afterTurn: 1 }),
  ],
  [
    'a `before_subagent_run` hook',
    (bad) =>
      run({
        model: new ScriptedModel().calls('subagent', { agent: 'a', prompt: 'x' }).says('x').says('y'),
        subagents: [{ name: 'a', description: 'A.', instructions: 'x', tools: [] }],
        hooks: [{ event: 'before_subagent_run', handler: bad }],
      }),
  ],
]

/** What is typed as synchronous: a promise in its place is the host's, with its rejection. */
const SYNCHRONOUS =
  /^(`(read|list)` of a log|`(redact|forRun)` of an extension|`startRun` of a tracing|`deps`|`openSession`|the events of `\w+`$)/

const lost: unknown[] = []
const listen = (reason: unknown): void => void lost.push(String(reason))
beforeAll(() => void process.on('unhandledRejection', listen))
afterAll(() => void process.off('unhandledRejection', listen))

describe('a host whose functions do anything', () => {
  test.each(PORTS)('hears of it in a `HarnessError`, or not at all: %s', async (port, use) => {
    for (const [does, bad] of Object.entries(BAD)) {
      if (does === 'rejects with null' && SYNCHRONOUS.test(port)) continue
      const error: unknown = await (async () => use(bad as Bad))().then(
        () => undefined,
        (reason: unknown) => reason ?? 'nothing',
      )
      for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve))
      expect(lost.splice(0), `${does}: rejections that nobody handles`).toEqual([])
      if (error === undefined) continue
      expect(error, does).toBeInstanceOf(HarnessError)
      expect((error as HarnessError).message, does).toMatch(/^.{5,}/)
    }
  })

  test.each(Object.entries(BAD))('a tool that is added must be one: %s', (_, bad) => {
    const given = (): unknown => {
      try {
        return bad()
      } catch {
        return null
      }
    }
    const value = given()
    if (value instanceof Promise) value.catch(() => undefined)
    expect(() => harnessOf({ model: model() }).addTool(value as ToolSpec)).toThrow(HarnessError)
  })
})
