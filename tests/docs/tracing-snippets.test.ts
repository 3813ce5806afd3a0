import { context, trace } from '@opentelemetry/api'
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base'
import { readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { beforeEach, expect, test, vi } from 'vitest'
import { fileLog, Harness } from 'thinharness'
import { ScriptedModel, scriptedProvider } from 'thinharness/testing'
import type { OtlpDocument } from '../extensions/tracing/collector.js'
import { spansIn } from '../extensions/tracing/collector.js'
import { filesIn, recordsIn, recordTree } from '../extensions/tracing/support.js'
import { inTemporaryFolder } from '../support/folder.js'

inTemporaryFolder({ 'notes/refunds.md': 'refund asked for by ana@example.com\n' })
beforeEach(() => {
  vi.spyOn(console, 'log').mockReturnValue()
})

test('docs/tracing.md: a local trace is redacted and converted to OTLP', async () => {
  await using provider = await scriptedProvider()
  provider.calls('search', { query: 'refund' }).says('ana@example.com did.')
  vi.stubEnv('ANTHROPIC_API_KEY', 'test-key')
  vi.stubEnv('ANTHROPIC_BASE_URL', provider.url.messages)
  await import('../../docs/snippets/tracing/local.js')
  const dir = resolve('traces')
  const records = await recordsIn(dir)
  expect(recordTree(records)).toBe(
    ['invoke_agent thinharness', '  chat claude-sonnet-5', '  execute_tool search', '  chat claude-sonnet-5'].join(
      '\n',
    ),
  )
  const told = JSON.stringify(records)
  expect(told).toContain('[e-mail] did.')
  expect(told).not.toContain('ana@example.com')

  const [file] = await filesIn(dir)
  vi.spyOn(process, 'argv', 'get').mockReturnValue(['node', 'otlp.js', join(dir, file ?? '')])
  await import('../../docs/snippets/tracing/otlp.js')
  const document = JSON.parse(await readFile('trace.json', 'utf8')) as OtlpDocument
  expect(spansIn(document).map(({ name }) => name)).toEqual(records.map(({ name }) => name))
})

test('docs/tracing.md: a run creates OpenTelemetry spans', async () => {
  const exporter = new InMemorySpanExporter()
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }))
  await using provider = await scriptedProvider()
  provider.says('None.')
  vi.stubEnv('ANTHROPIC_API_KEY', 'test-key')
  vi.stubEnv('ANTHROPIC_BASE_URL', provider.url.messages)
  await import('../../docs/snippets/tracing/open-telemetry.js')
  trace.disable()
  context.disable()
  const [, run] = exporter.getFinishedSpans()
  expect(run?.name).toBe('invoke_agent order-desk')
  expect(run?.attributes['gen_ai.conversation.id']).toBe('chat-17')
})

test('docs/tracing.md: a run is traced from its log', async () => {
  using model = new ScriptedModel().says('Done.')
  await new Harness({ model, builtinTools: [], log: fileLog('./runs') }).run('Go.', { runId: 'run_1042' })
  await import('../../docs/snippets/tracing/from-log.js')
  expect(recordTree(await recordsIn(resolve('traces')))).toBe('invoke_agent thinharness\n  chat scripted-1')
})
