import { createHash } from 'node:crypto'
import { chmod, readFile, stat, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { ScriptedModel } from 'thinharness/testing'
import { localTraces, openTelemetry } from 'thinharness/tracing'
import type { TraceRecord } from 'thinharness/tracing'
import { harnessOf, tool } from '../../harness/support.js'
import { allTextOf, begun, eventsOf, filesIn, otel, recordsIn, recordTree } from './support.js'
import { temporaryFolder } from '../../support/folder.js'

describe('a local trace', () => {
  test('TC-05 TC-08 a local trace is one file with one full record per line, in a folder of its workspace, readable only by its owner', async () => {
    const dir = temporaryFolder()
    const root = join(temporaryFolder(), 'my shop (old)')
    using model = new ScriptedModel().calls('a', { id: 7 }).says('Late.')
    const lookup = tool('a', () => 'Hamburg')
    await using harness = harnessOf({ model, root, tools: [lookup], tracing: [localTraces({ dir })] })
    await harness.run('Where is it?', { runId: 'run_1' })
    await harness.close()

    const hash = createHash('sha1').update(root).digest('hex').slice(0, 10)
    const traceId = createHash('sha256').update('run_1').digest('hex').slice(0, 32)
    expect(await filesIn(dir)).toEqual([`my-shop-old-${hash}/${traceId}.jsonl`])
    const folder = join(dir, `my-shop-old-${hash}`)
    expect((await stat(folder)).mode & 0o777).toBe(0o700)
    expect((await stat(join(folder, `${traceId}.jsonl`))).mode & 0o777).toBe(0o600)

    const records = await recordsIn(dir)
    expect(recordTree(records)).toBe('invoke_agent thinharness\n  chat scripted-1\n  execute_tool a\n  chat scripted-1')
    const [first, call, , run] = records
    expect(call).toEqual({
      type: 'span',
      traceId,
      spanId: expect.stringMatching(/^[0-9a-f]{16}$/) as string,
      parentSpanId: run?.spanId ?? '',
      name: 'execute_tool a',
      kind: 'internal',
      startedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/) as string,
      endedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/) as string,
      durationMs: expect.any(Number) as number,
      status: 'ok',
      error: null,
      attributes: {
        'gen_ai.operation.name': 'execute_tool',
        'gen_ai.tool.name': 'a',
        'gen_ai.tool.call.id': 'call_1',
        'gen_ai.tool.type': 'function',
        'gen_ai.tool.description': 'The tool a.',
        'gen_ai.tool.call.arguments': { id: 7 },
        'gen_ai.tool.call.result': { ok: true, content: 'Hamburg', metadata: {} },
        'thinharness.tool.index': 0,
      },
      events: [],
    } satisfies TraceRecord)
    expect(first?.attributes['gen_ai.input.messages']).toEqual([
      { role: 'user', parts: [{ type: 'text', content: 'Where is it?' }] },
    ])
    expect(run?.attributes['gen_ai.output.messages']).toEqual([
      { role: 'assistant', parts: [{ type: 'text', content: 'Late.' }] },
    ])
  })

  test('is in the folder that `THINHARNESS_TRACES` names', async () => {
    const dir = temporaryFolder()
    vi.stubEnv('THINHARNESS_TRACES', dir)
    try {
      using model = new ScriptedModel().says('Done.')
      await using harness = harnessOf({ model, tracing: [localTraces()] })
      await harness.run('Go.')
      await harness.close()
    } finally {
      vi.unstubAllEnvs()
    }
    expect(await recordsIn(dir)).toHaveLength(2)
  })

  test('TC-07 a local trace does not change the content that another sink captures', async () => {
    const dir = temporaryFolder()
    const traced = otel()
    using model = new ScriptedModel().says('REPLY')
    const tracing = [localTraces({ dir }), openTelemetry({ tracer: traced.tracer })]
    await using harness = harnessOf({ model, tracing })
    await harness.run('PROMPT')
    await harness.close()
    expect(JSON.stringify(await recordsIn(dir))).toContain('PROMPT')
    expect(allTextOf(traced.spans)).not.toMatch(/PROMPT|REPLY/)
  })

  test('holds no content if that is disabled', async () => {
    const dir = temporaryFolder()
    using model = new ScriptedModel().calls('a', { x: 'SECRET' }, { text: 'SECRET' }).says('SECRET')
    const tracing = [localTraces({ dir, captureContent: false })]
    await using harness = harnessOf({ model, tools: [tool('a', () => 'SECRET')], tracing })
    await harness.run('SECRET')
    await harness.close()
    expect(await recordsIn(dir)).toHaveLength(4)
    expect(JSON.stringify(await recordsIn(dir))).not.toContain('SECRET')
  })

  test('continues in its own file when a run is resumed', async () => {
    const dir = temporaryFolder()
    const events = await eventsOf(new ScriptedModel().says('Hi.'), 'Hi?')
    for (const resumed of [false, true]) {
      const tracing = localTraces({ dir })
      const run = begun(tracing, events, { resumed })
      for (const event of events) run.event(event)
      await tracing.flush?.()
    }
    expect(await filesIn(dir)).toHaveLength(1)
    const runs = (await recordsIn(dir)).filter(({ name }) => name === 'invoke_agent thinharness')
    expect(runs.map(({ attributes }) => attributes['thinharness.run.resumed'])).toEqual([undefined, true])
  })
})

describe('redacted content', () => {
  test('is in no trace: prompts, replies, arguments, results, instructions, errors', async () => {
    const dir = temporaryFolder()
    const traced = otel()
    const redact = (text: string): string => text.replaceAll(/sk-\w+/g, '[key]')
    using model = new ScriptedModel()
      // Escaped by the model, so that it does not look like a key.
      .calls('a', '{"key":"\\u0073k-argument"}', { text: 'sk-reply', reasoning: 'sk-thought' })
      .fails('sk-error')
    const tracing = [
      localTraces({ dir, redact }),
      openTelemetry({ tracer: traced.tracer, captureContent: true, redact }),
    ]
    const options = { tools: [tool('a', () => 'sk-result')], instructions: 'sk-instructions', tracing }
    await using harness = harnessOf({ model, ...options })
    await harness.run('sk-prompt').catch(() => undefined)
    await harness.close()
    const local = JSON.stringify(await recordsIn(dir))
    for (const text of [local, allTextOf(traced.spans)]) {
      expect(text).not.toMatch(/sk-\w/)
      expect(text.split('[key]').length).toBeGreaterThan(7)
    }
  })

  test('is left out when redaction fails', async () => {
    const dir = temporaryFolder()
    const redact = (): string => {
      throw new Error('No dictionary.')
    }
    using model = new ScriptedModel().says('REPLY')
    await using harness = harnessOf({ model, tracing: [localTraces({ dir, redact })] })
    await harness.run('PROMPT')
    await harness.close()
    const told = JSON.stringify(await recordsIn(dir))
    expect(told).not.toMatch(/PROMPT|REPLY/)
    expect(told).toContain('[left out: redaction failed]')
  })
})

describe('files', () => {
  const runs = async (dir: string, count: number, reply: string): Promise<void> => {
    const model = ScriptedModel.each(() => new ScriptedModel().says(reply))
    await using harness = harnessOf({ model, tracing: [localTraces({ dir, maxAgeDays: 7 })] })
    for (let index = 0; index < count; index += 1) await harness.run('Go.', { runId: `run_${index}` })
  }

  test('traces of a workspace that are older than the limit are deleted; no other files are', async () => {
    const dir = temporaryFolder()
    await runs(dir, 2, 'Hi.')
    const [first = '', second = ''] = await filesIn(dir)
    const notes = join(dir, first, '..', 'notes.jsonl')
    await writeFile(notes, 'mine')
    const daysAgo = (days: number): Date => new Date(Date.now() - days * 24 * 60 * 60 * 1000)
    for (const path of [notes, join(dir, first)]) await utimes(path, daysAgo(8), daysAgo(8))
    await utimes(join(dir, second), daysAgo(6), daysAgo(6))
    await using harness = harnessOf({
      model: new ScriptedModel().says('Hi.'),
      tracing: [localTraces({ dir, maxAgeDays: 7 })],
    })
    await harness.run('Go.', { runId: 'another' })
    await harness.close()
    const files = await filesIn(dir)
    expect(files).toHaveLength(3)
    expect(files).not.toContain(first)
    expect(files).toContain(second)
  })

  test('a record that cannot be written is reported once and lost; the run continues', async () => {
    const warned = vi.spyOn(process, 'emitWarning').mockReturnValue()
    const dir = join(temporaryFolder(), 'file')
    await writeFile(dir, 'no folder')
    await runs(dir, 3, 'Hi.')
    expect(warned.mock.calls.map(([message]) => String(message))).toEqual([
      expect.stringMatching(/^Spans of a local trace are lost: (EEXIST|ENOTDIR)/),
    ])
    expect(await readFile(dir, 'utf8')).toBe('no folder')
    warned.mockRestore()
  })

  test('a deleted folder is created again', async () => {
    const dir = temporaryFolder()
    await runs(dir, 1, 'Hi.')
    await chmod(dir, 0o755)
    await runs(dir, 1, 'Hi again.')
    expect(await recordsIn(dir)).toHaveLength(4)
  })
})
