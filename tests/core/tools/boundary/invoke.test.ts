import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { ModelRetry } from '#contracts/errors.js'
import { callTool } from '#harness/call-tool.js'
import { defineTool } from '#core/tools/define-tool.js'
import { invoke } from '#core/tools/boundary/invoke.js'
import { ToolResult } from '#core/tools/tool-result.js'
import type { ToolContext, ToolSpec } from '#core/tools/tool-spec.js'

const context: ToolContext = {
  runId: 'run_1',
  callId: 'call_1',
  toolName: 'x',
  root: '/nowhere',
  depth: 0,
  idempotencyKey: 'run_1:call_1',
  metadata: { user: 'u' },
  deps: undefined,
  signal: new AbortController().signal,
  progress: () => undefined,
  ask: () => {
    throw new Error('There is nobody to ask.')
  },
  decide: () => Promise.reject(new Error('There is no model.')),
  spawn: () => {
    throw new Error('No run is started here.')
  },
}

function tool(handler: (args: { readonly n?: number | undefined }, context: ToolContext) => unknown): ToolSpec {
  return defineTool({ name: 'x', description: '', parameters: z.object({ n: z.number().optional() }), handler })
}

describe('invoke', () => {
  test('HC-34 HC-37 a handler is called once, with the checked arguments and its context, and awaited', async () => {
    const calls: unknown[] = []
    const spec = tool(async (args, given) => {
      calls.push(args, given)
      return Promise.resolve('done')
    })

    expect(await invoke(spec, { n: 1 }, context)).toEqual({ kind: 'succeeded', content: 'done' })
    expect(calls).toEqual([{ n: 1 }, context])
  })

  test('HC-36 a thenable that is not a Promise is awaited', async () => {
    const thenable = { then: (resolve: (value: string) => void) => resolve('later') }

    expect(
      await invoke(
        tool(() => thenable),
        {},
        context,
      ),
    ).toEqual({ kind: 'succeeded', content: 'later' })
  })

  test('TR-13 HC-38 an exception, at once or later, becomes a failed result', async () => {
    const retry = { kind: 'failed', errorType: 'ModelRetry', content: 'again', retry: true }
    const thrown = tool(() => {
      throw new ModelRetry('again')
    })

    expect(await invoke(thrown, {}, context)).toEqual(retry)
    expect(
      await invoke(
        tool(() => Promise.reject(new ModelRetry('again'))),
        {},
        context,
      ),
    ).toEqual(retry)
    expect(
      await invoke(
        tool(() => Promise.reject(new Error('boom'))),
        {},
        context,
      ),
    ).toEqual({
      kind: 'failed',
      errorType: 'Error',
      content: 'Error: boom',
      retry: false,
    })
  })

  test('TR-03 TR-14 a validation error inside a handler is not a retry', async () => {
    const outcome = await invoke(
      tool(() => z.string().parse(5)),
      {},
      context,
    )

    expect(outcome).toMatchObject({ kind: 'failed', errorType: 'ZodError', retry: false })
  })

  test("a result outside a run is bounded by the tool's limit, or by 40,000 characters", async () => {
    const spec = tool(() => 'x'.repeat(300_000))
    const { content, metadata } = await callTool(spec, {})

    expect(metadata).toMatchObject({ truncated: true, chars: 300_000 })
    expect(content).toMatch(/^x{19978}\n\[… 260044 of 300000 .*\n+x{19978}$/)
    expect(await callTool({ ...spec, maxOutputChars: 10 }, {})).toMatchObject({ content: 'x'.repeat(10) })
  })

  test('a hand-written tool may be incomplete', async () => {
    const spec = (call: () => unknown): ToolSpec => ({ ...tool(() => 1), call: call as ToolSpec['call'] })

    expect(
      await invoke(
        spec(() => 'text'),
        {},
        context,
      ),
    ).toEqual({ kind: 'succeeded', content: 'text' })
    expect(
      await invoke(
        spec(() => ({ kind: 'cancelled', reason: 'r' })),
        {},
        context,
      ),
    ).toEqual({ kind: 'cancelled', reason: 'r' })
    expect(
      await invoke(
        spec(() => ({ kind: 'failed' })),
        {},
        context,
      ),
    ).toEqual({ kind: 'succeeded', value: { kind: 'failed' }, content: '{"kind":"failed"}' })
  })
})

describe('callTool', () => {
  test('HC-15 it returns the content as a model would read it, and the value', async () => {
    const spec = defineTool({
      name: 'x',
      description: '',
      parameters: { type: 'object' },
      handler: (args) => ({ b: 'é', a: args }),
    })

    expect(await callTool(spec, '{"z":1}')).toEqual({
      ok: true,
      content: '{"b":"é","a":{"z":1}}',
      value: { b: 'é', a: { z: 1 } },
      metadata: {},
    })
  })

  test('HC-16 TR-02 it rejects invalid arguments without running the tool', async () => {
    let runs = 0
    const spec = tool(() => ++runs)

    expect(await callTool(spec, { n: 'x' })).toMatchObject({
      ok: false,
      metadata: { error_type: 'ValidationError', retry: true, tool: 'x' },
    })
    expect(runs).toBe(0)
    expect(await callTool(spec, { n: 1 })).toMatchObject({ ok: true, content: '1' })
  })

  test('it answers the questions of a handler, by key if there are several', async () => {
    const spec = tool(async (_args, { ask }) => {
      const first = await ask('First?', z.string())
      return `${first} ${await ask('Second?', z.number(), { key: 'second' })}`
    })

    expect(await callTool(spec, {}, { answer: 'one', answers: { second: 2 } })).toEqual({
      ok: true,
      content: 'one 2',
      metadata: {},
    })
    expect(await callTool(spec, {}, { answer: 'one' })).toMatchObject({
      ok: false,
      metadata: { error_type: 'Suspended' },
    })
  })

  test('it returns the metadata and failures of the tool', async () => {
    const spec = tool(
      () => new ToolResult({ ok: false, content: 'Stale.', metadata: { error_type: 'Stale', retry: true, at: 5 } }),
    )

    expect(await callTool(spec, {})).toEqual({
      ok: false,
      content: 'Stale.',
      metadata: { error_type: 'Stale', retry: true, at: 5 },
    })
  })

  test("it passes the handler a context, or the caller's replacement", async () => {
    const spec = tool((_args, { toolName, callId, metadata, signal }) => ({
      toolName,
      callId,
      metadata,
      aborted: signal.aborted,
    }))

    expect((await callTool(spec, '')).value).toEqual({
      toolName: 'x',
      callId: 'call_1',
      metadata: {},
      aborted: false,
    })
    expect((await callTool(spec, {}, { callId: undefined, metadata: { user: 'u' } })).value).toMatchObject({
      callId: 'call_1',
      metadata: { user: 'u' },
    })
  })
})
