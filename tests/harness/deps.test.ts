import { describe, expect, expectTypeOf, test } from 'vitest'
import { z } from 'zod'
import { callTool, defineTool, Harness, memoryLog, withDeps } from 'thinharness'
import type { Hook, ToolContext, ToolSpec } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { failureOf } from './support.js'
import { eventsOfRun } from '../support/collect.js'

interface App {
  readonly db: { order(id: string): string }
}
interface Mail {
  readonly mail: { send(text: string): void }
}

const app: App = { db: { order: (id) => `Order ${id}` } }
const builtinTools: [] = []

const lookup = defineTool({
  name: 'lookup',
  description: 'Finds an order.',
  parameters: z.object({ id: z.string() }),
  handler: ({ id }, { deps }: ToolContext<App>) => deps.db.order(id),
})

const plain = defineTool({
  name: 'plain',
  description: 'Needs nothing.',
  parameters: z.object({ n: z.number().default(1) }),
  handler: ({ n }, { deps }) => {
    expectTypeOf(deps).toEqualTypeOf<unknown>()
    return n
  },
})

const model = (): ScriptedModel => new ScriptedModel().calls('lookup', { id: '7' }).says('Done.')

/** What the tool returned in the run's log. */
const returned = (result: { toolCallRecords: readonly { output: string }[] }): unknown =>
  (JSON.parse(result.toolCallRecords[0]?.output ?? '{}') as { content?: unknown }).content

describe('dependencies', () => {
  test('DP-01 they come from the factory of the harness, for each run, with its id and metadata', async () => {
    const runs: unknown[] = []
    const deps = (run: { readonly runId: string; readonly metadata: object }): App => {
      runs.push(run)
      return app
    }
    const log = memoryLog()
    const harness = new Harness({ model: model(), builtinTools, tools: [lookup], deps, log })
    const result = await harness.run('Go.', { runId: 'run_1', metadata: { tenant: 7 } })
    expect(returned(result)).toBe('Order 7')
    expect(runs).toEqual([{ runId: 'run_1', metadata: { tenant: 7 } }])
  })

  test('DP-02 those of a call replace those of the harness', async () => {
    const harness = new Harness({ model: model(), builtinTools, tools: [lookup], deps: () => app })
    const result = await harness.run('Go.', { deps: { db: { order: () => 'Mine' } } })
    expect(returned(result)).toBe('Mine')
  })

  test('DP-03 they are created again when a run continues, from its own metadata', async () => {
    const runs: unknown[] = []
    const held: ToolSpec<App> = { ...lookup, requiresApproval: true }
    const deps = (run: { readonly metadata: object }): App => {
      runs.push(run.metadata)
      return app
    }
    const harness = new Harness({ model: model(), builtinTools, tools: [held], deps, log: memoryLog() })
    await harness.run('Go.', { runId: 'run_1', metadata: { tenant: 7 } })
    const result = await harness.resume('run_1', [{ callId: 'call_1', approved: true }])
    expect(returned(result)).toBe('Order 7')
    expect(runs).toEqual([{ tenant: 7 }, { tenant: 7 }])
  })

  test('DP-04 they are those of the parent in a child run, and reach hooks', async () => {
    const seen: unknown[] = []
    const hook: Hook = { event: 'run_start', handler: ({ deps }) => void seen.push(deps) }
    const delegate = defineTool({
      name: 'delegate',
      description: 'Hands a task on.',
      parameters: z.object({}),
      handler: async (_args, context: ToolContext<App>) =>
        (await context.spawn({ prompt: 'Look.', tools: [lookup] }).result).text,
    })
    const script = new ScriptedModel()
      .calls('delegate')
      .calls('lookup', { id: '8' })
      .says('In the child.')
      .says('Done.')
    const harness = new Harness({ model: script, builtinTools, tools: [delegate], deps: () => app, hooks: [hook] })
    await harness.run('Go.')
    expect(seen).toEqual([app])
    expect(JSON.stringify(script.heard)).toContain('Order 8')
  })

  test('DP-05 they are not in the log', async () => {
    const log = memoryLog()
    const deps = { db: { order: () => 'x', secret: 'hunter2' } }
    const harness = new Harness({ model: model(), builtinTools, tools: [lookup], deps: () => deps, log })
    const result = await harness.run('Go.', { runId: 'run_1' })
    const kept = await eventsOfRun(log, 'run_1')
    expect(JSON.stringify([kept, result.resumeState])).not.toContain('hunter2')
  })

  test('DP-06 a failure to create them fails the run before its first event', async () => {
    const log = memoryLog()
    const deps = (): App => {
      throw new Error('No database.')
    }
    const harness = new Harness({ model: model(), builtinTools, tools: [lookup], deps, log })
    expect((await failureOf(harness.run('Go.', { runId: 'run_1' }))).message).toContain('No database.')
    for await (const event of log.read({ kind: 'run', id: 'run_1' })) expect.fail(event.kind)
  })

  test('DP-07 they are passed to `callTool`', async () => {
    expect(await callTool(lookup, { id: '9' }, { deps: app })).toMatchObject({ ok: true, content: 'Order 9' })
  })
})

describe('withDeps', () => {
  const own = withDeps<App>()

  test('DP-08 it gives entry points of one app', async () => {
    const find = own.defineTool({
      name: 'lookup',
      description: 'Finds an order.',
      parameters: z.object({ id: z.string() }),
      handler: ({ id }, { deps }) => deps.db.order(id),
    })
    expectTypeOf(find).toEqualTypeOf<ToolSpec<App>>()
    const harness = new own.Harness({ model: model(), builtinTools, tools: [find] })
    expect(returned(await harness.run('Go.', { deps: app }))).toBe('Order 7')
    const extension = own.defineExtension({ name: 'x', tools: [find] })
    expect(extension.name).toBe('x')
  })

  test('DP-09 a harness without its dependencies rejects a run before the first event', async () => {
    const harness = new own.Harness({ model: model(), builtinTools, tools: [lookup] })
    expect(await failureOf(harness.run('Go.'))).toMatchObject({ code: 'invalid_options' })
    expect(() => harness.stream('Go.')).toThrow(/created by `withDeps`: pass `deps`/)
  })

  test('DP-10 a typed answer keeps its type', () => {
    const harness = new own.Harness({ outputType: z.object({ n: z.number() }) })
    expectTypeOf(harness).toEqualTypeOf<Harness<{ n: number }, App>>()
  })
})

test('DP-11 the compiler asks for the dependencies that the tools need', () => {
  expectTypeOf(lookup).toEqualTypeOf<ToolSpec<App>>()
  expectTypeOf(plain).toEqualTypeOf<ToolSpec>()
  const both: App & Mail = { ...app, mail: { send: () => undefined } }
  const send = defineTool({
    name: 'send',
    description: 'Sends a mail.',
    parameters: z.object({ text: z.string() }),
    handler: ({ text }, { deps }: ToolContext<Mail>) => deps.mail.send(text),
  })

  // Without tools that need any, none are asked for.
  new Harness({ tools: [plain] })
  new Harness()
  // The dependencies, or more than them.
  new Harness({ tools: [lookup, plain], deps: () => app })
  new Harness({ tools: [lookup], deps: () => both })
  new Harness({ tools: [lookup, send], deps: () => both })
  // @ts-expect-error The tool needs `deps`.
  new Harness({ tools: [lookup] })
  // @ts-expect-error `mail` is missing.
  new Harness({ tools: [lookup, send], deps: () => app })
  // @ts-expect-error The database is another.
  new Harness({ tools: [lookup], deps: () => ({ db: 'postgres://' }) })
  // @ts-expect-error `toolz` is no option.
  expect(() => new Harness({ tools: [lookup], deps: () => app, toolz: [] })).toThrow(/toolz/)
  // @ts-expect-error A tool with dependencies is no tool without.
  const tool: ToolSpec = lookup
  expect(tool.name).toBe('lookup')
  // @ts-expect-error A harness of another app does not have them.
  expect(() => new Harness({ deps: () => ({ mail: 1 }) }).stream('Go.', { deps: app })).toThrow()
})
