import { readFileSync } from 'node:fs'
import { dirname, relative, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { defineTool, memoryLog } from 'thinharness'
import type { DurableEvent, Model } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { failureOf, harnessOf, tool } from '../../../harness/support.js'

describe('the history of a run', () => {
  const edit = defineTool({
    name: 'edit',
    description: 'Edits.',
    parameters: {
      type: 'object',
      properties: { path: { type: 'string' }, replace_all: { type: 'boolean' } },
      required: ['path'],
      additionalProperties: false,
    },
    aliases: { file: 'path' },
    handler: (args) => args,
  })

  test('149 it holds the repaired arguments, which the model sees too; hooks and hosts see the list of repairs', async () => {
    using model = new ScriptedModel().calls('edit', { file: 'a.txt', replaceAll: 'true' }).says('Done.')
    const result = await harnessOf({ model, tools: [edit] }).run('Go.')
    const repaired = '{"path":"a.txt","replace_all":true}'
    expect(result.toolCallRecords.map(({ call }) => call.arguments)).toEqual([repaired])
    expect(result.transcript[1]).toMatchObject({ parts: [{ type: 'tool_call', arguments: repaired }] })
    expect(model.requests[1]?.entries).toMatchObject([{ role: 'tool', callId: 'call_1' }])
    const repairs = [
      '`file` was read as `path`',
      '`replaceAll` was read as `replace_all`',
      'the text in `replaceAll` was read as true or false',
    ]
    const envelope = JSON.parse(result.toolCallRecords[0]?.output ?? '') as unknown
    expect(envelope).toMatchObject({ ok: true, metadata: { repairs } })
    expect(model.heard[1]).toMatchObject({ outputs: [{ ok: true }] })
  })

  test.each(['{"path":', '[1]', '5', 'not json', ''])(
    '149 it never shows malformed arguments as an empty object: %j',
    async (text) => {
      using model = new ScriptedModel()
        .callsAll(['edit', 'ghost'].map((name) => ({ name, arguments: text })))
        .says('Done.')
      const result = await harnessOf({ model, tools: [edit], toolRetries: 9 }).run('Go.')
      const shown = result.toolCallRecords.map(({ call }) => call.arguments)
      for (const each of shown) expect(Object.keys(JSON.parse(each) as object)).toEqual(['invalid_arguments'])
    },
  )

  test('149 it keeps the original of an object that does not fit', async () => {
    using model = new ScriptedModel().calls('edit', { path: 5, other: 1 }).says('Done.')
    const result = await harnessOf({ model, tools: [edit] }).run('Go.')
    expect(result.toolCallRecords.map(({ call }) => call.arguments)).toEqual(['{"path":5,"other":1}'])
  })

  test('158 a handler that reads log and transcript while it runs finds its own call already stored', async () => {
    const log = memoryLog()
    let found: DurableEvent[] = []
    const looking = tool('looking', async (_args, { runId }) => {
      found = []
      for await (const event of log.read({ kind: 'run', id: runId })) found.push(event)
    })
    using model = new ScriptedModel()
      .callsAll([{ name: 'looking', arguments: { n: 1 } }], { text: 'I look.' })
      .says('Done.')
    await harnessOf({ model, tools: [looking], log }).run('Go.')
    expect(found.slice(-2)).toMatchObject([
      {
        kind: 'model_message',
        entry: { parts: [{ text: 'I look.' }, { callId: 'call_1', name: 'looking', arguments: '{"n":1}' }] },
      },
      { kind: 'tool_call_started', callId: 'call_1', arguments: '{"n":1}' },
    ])
  })
})

describe('failures that end the run', () => {
  test('160 a provider error leaves a transcript that the next run can use', async () => {
    using model = new ScriptedModel().calls('a').fails('Down.')
    const error = await failureOf(harnessOf({ model, tools: [tool('a')] }).run('Go.'))
    expect(error).toMatchObject({
      code: 'provider_error',
      message: 'Down.',
      run: { resumeState: { phase: { at: 'ended' } } },
    })
    expect(error.run.transcript.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool'])
  })

  test.each<[string, number, string[]]>([
    ['the first event', 1, []],
    ['the request', 2, ['run_started']],
    ['the reply', 3, ['run_started', 'model_request_started']],
    ['the start of a call', 4, ['run_started', 'model_request_started', 'model_message']],
    ['the end of a call', 5, ['run_started', 'model_request_started', 'model_message', 'tool_call_started']],
  ])(
    '160 a store failure executes nothing after it, and the stream ends with `run_failed`: %s',
    async (_name, failing, kept) => {
      const inner = memoryLog()
      let appends = 0
      const log = {
        ...inner,
        append: (...args: Parameters<typeof inner.append>) =>
          ++appends >= failing ? Promise.reject(new Error('The disk is full.')) : inner.append(...args),
      }
      let ran = 0
      const model = new ScriptedModel().calls('a').says('Done.')
      const harness = harnessOf({ model, tools: [tool('a', () => void (ran += 1))], log })
      const stream = harness.stream('Go.', { runId: 'run_s', deltas: false })
      const kinds: string[] = []
      const reading = (async () => {
        for await (const event of stream) kinds.push(`${event.kind}${event.durable ? '' : ' (not kept)'}`)
      })()
      await expect(reading).rejects.toMatchObject({
        code: 'store_failure',
        message: 'The log could not store an event of run `run_s`: The disk is full.',
        cause: new Error('The disk is full.'),
      })
      expect(kinds).toEqual([...kept, 'run_failed (not kept)'])
      expect(model.heard).toHaveLength(failing > 2 ? 1 : 0)
      expect(ran).toBe(failing > 4 ? 1 : 0)
      const error = await failureOf(stream.result)
      if (failing === 1) expect(error.run).toBeUndefined()
      else expect(error.run).toMatchObject({ stopReason: 'error', runId: 'run_s' })
      // A call whose end was not kept may have had its effect; one whose start was not kept has had none.
      const answers = (error.run as typeof error.run | undefined)?.toolCallRecords.map(({ output }) => output) ?? []
      const types = answers.map((text) => (JSON.parse(text) as { metadata: object }).metadata)
      expect(types).toEqual(
        failing === 5 ? [{ error_type: 'Interrupted' }] : failing === 4 ? [{ error_type: 'Cancelled' }] : [],
      )
    },
  )
})

describe('an event emitted by a model', () => {
  test('160 a store failure for it stops the current request', async () => {
    const inner = memoryLog()
    const log = {
      ...inner,
      append: (...[runId, events]: Parameters<typeof inner.append>) =>
        events.some(({ kind }) => kind === 'cache_bust')
          ? Promise.reject(new Error('The disk is full.'))
          : inner.append(runId, events),
    }
    const model: Model = {
      provider: 'p',
      id: 'm',
      capabilities: {},
      openSession: () => ({
        turn: (_transcript, _constants, { signal, onCacheBust }) => {
          onCacheBust?.({ path: '$', cause: 'entry_changed' })
          return new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('Stopped.'))))
        },
      }),
    }
    expect((await failureOf(harnessOf({ model, log }).run('Go.'))).code).toBe('store_failure')
  })
})

describe('the files that the core loads', () => {
  const source = resolve(import.meta.dirname, '../../../../src')

  /** The files that a file imports when it is loaded, types and `import()` left out, with theirs. */
  function loaded(file: string, seen = new Set<string>()): Set<string> {
    if (seen.has(file)) return seen
    seen.add(file)
    const text = readFileSync(file, 'utf8')
    for (const [, clause = '', from = ''] of text.matchAll(
      /^(?:import|export)\s+(type\s)?[^'"]*?from\s+['"]([^'"]+)['"]/gms,
    )) {
      if (clause !== '') continue
      const path = from.replace(/\.js$/, '.ts')
      if (from.startsWith('.')) loaded(resolve(dirname(file), path), seen)
      else if (from.startsWith('#')) loaded(resolve(source, path.slice(1)), seen)
      else seen.add(from)
    }
    return seen
  }

  test('162 the core loads neither an optional folder nor a package', () => {
    const names = [...loaded(resolve(source, 'index.ts'))].map((file) =>
      file.startsWith('/') ? relative(source, file) : file,
    )
    expect(names).toContain('harness/harness.ts')
    expect(
      names.filter(
        (name) =>
          !/^(core|run|contracts|schema|harness|store|util)\/|\/subagent-options\.ts$|^index\.ts$|^node:/.test(name),
      ),
    ).toEqual([])
  })
})
