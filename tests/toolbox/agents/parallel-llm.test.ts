import { existsSync, readdirSync } from 'node:fs'
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { Harness, HarnessError } from 'thinharness'
import type { HarnessOptions, HarnessResult, JsonObject, Model } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import type { ModelRequest, Reply } from 'thinharness/testing'
import { parallelLlm } from 'thinharness/tools'
import type { ParallelLlmOptions } from 'thinharness/tools'
import { retryDelayMs } from '#toolbox/agents/parallel-llm/parallel-llm.js'
import { envelopeIn } from '../../run/children/subagents-support.js'
import { logWith, watchedLog } from '../../run/resume/pause-support.js'
import { eventsOf, failureOf, gate, ofKind } from '../../harness/support.js'
import { folderWith } from '../support.js'

type Line = string | Reply | Error
type Lines = (prompt: string, turn: number, request: ModelRequest) => Line | Promise<Line>

/** A model that answers each prompt by its first line, request by request. */
function answering(lines: Lines): ScriptedModel {
  return new ScriptedModel().always(async (request) => {
    const [first] = request.messages.flatMap((each) => (each.role === 'user' ? [String(each.content)] : []))
    const line = await lines(first ?? '', request.turn, request)
    return line instanceof Error ? { fault: 'error', error: line } : line
  })
}

const inline = (...prompts: string[]): JsonObject => ({ source: { kind: 'inline', prompts } })
const file = (path: string): JsonObject => ({ source: { kind: 'file', path } })
const echo = (): ScriptedModel => answering((prompt) => `<${prompt}>`)
const busy = (): HarnessError =>
  new HarnessError('provider_error', 'It is busy.', { status: 503, retryable: true, retryAfterMs: 1 })

interface Asked {
  readonly root?: string
  readonly options?: ParallelLlmOptions
  readonly beside?: HarnessOptions
}

function calling(args: JsonObject, model: Model, { root, options, beside }: Asked = {}): Harness {
  return new Harness({
    builtinTools: [],
    ...(root !== undefined && { root }),
    model: new ScriptedModel().calls('parallel_llm', args).says('Done.'),
    tools: [parallelLlm({ model, ...options })],
    ...beside,
  })
}

async function resultOf(args: JsonObject, model: Model, asked: Asked = {}): Promise<HarnessResult> {
  return calling(args, model, asked).run('Go.')
}

async function told(args: JsonObject, model: Model, asked: Asked = {}) {
  return envelopeIn((await resultOf(args, model, asked)).toolCallRecords[0])
}

async function entries(args: JsonObject, model: Model, asked: Asked = {}): Promise<unknown> {
  return (JSON.parse((await told(args, model, asked)).content) as { results: unknown }).results
}

describe('prompts and results', () => {
  test('PL-01 PL-10 PL-32 results are compact and in the order of the prompts; each request holds one prompt and the shared system text, without tools', async () => {
    const model = echo()
    const result = await resultOf({ ...inline('a', 'b'), system: 'Be brief.' }, model, {
      beside: { instructions: 'Mine.' },
    })
    const counts = { total: 2, succeeded: 2, failed: 0, model_requests: 2 }
    const results = [
      { index: 0, ok: true, result: '<a>' },
      { index: 1, ok: true, result: '<b>' },
    ]
    expect(envelopeIn(result.toolCallRecords[0])).toEqual({
      ok: true,
      content: JSON.stringify({ ...counts, results }),
      metadata: counts,
    })
    for (const { constants, transcriptLength, entries: said } of model.requests) {
      expect([constants.tools, constants.instructions, transcriptLength]).toEqual([[], 'Be brief.', 1])
      expect(JSON.stringify(said)).not.toContain('limit')
    }
    expect(result.usage).toMatchObject({
      modelRequests: 2,
      toolCalls: 1,
      inputTokens: 40,
      children: { modelRequests: 2, toolCalls: 0 },
    })
  })

  test('PL-02 prompts can come from a file and results can be written to one as formatted JSON; the summary lists the failed prompts', async () => {
    const root = await folderWith({ 'in.json': '["a","bad","c"]' })
    const model = answering((prompt) =>
      prompt === 'bad' ? new HarnessError('provider_error', 'No.', { status: 400 }) : prompt,
    )
    const args = { ...file('in.json'), output_file: 'out/of/it.json' }
    const counts = { total: 3, succeeded: 2, failed: 1, model_requests: 3 }
    const summary = { ...counts, output_file: 'out/of/it.json' }
    expect(await told(args, model, { root })).toEqual({
      ok: true,
      content: JSON.stringify({ ...summary, failed_indices: [1] }),
      metadata: summary,
    })
    const results = [
      { index: 0, ok: true, result: 'a' },
      { index: 1, ok: false, error: 'No.' },
      { index: 2, ok: true, result: 'c' },
    ]
    const text = await readFile(join(root, 'out/of/it.json'), 'utf8')
    expect(text).toBe(`${JSON.stringify({ ...counts, results }, null, 2)}\n`)
    expect(readdirSync(join(root, 'out/of'))).toEqual(['it.json'])
  })

  test.each(['', '  ', '{}', '["a",1]', '[]', 'no'])(
    'PL-03 every invalid prompt file fails with the same error: %j',
    async (text) => {
      const root = await folderWith({ 'in.json': text })
      const model = echo()
      expect(await told(file('in.json'), model, { root })).toMatchObject({
        ok: false,
        content: 'a file of prompts must contain a JSON array with at least one string',
        metadata: { error_type: 'ValueError' },
      })
      expect(model.requests).toEqual([])
    },
  )

  test.each<[string, JsonObject]>([
    ['PL-04 a call without a source', {}],
    ['PL-04 a source without a kind', { source: { prompts: ['a'] } }],
    ['PL-04 a source of both kinds', { source: { kind: 'inline', prompts: ['a'], path: 'b' } }],
    ['PL-04 an empty list of prompts', inline()],
    ['PL-05 a `model` argument', { ...inline('a'), model: 'gpt' }],
    ['PL-25 an `output_type` argument', { ...inline('a'), output_type: {} }],
    ['too many at once', { ...inline('a'), max_concurrency: 33 }],
  ])('an invalid call is rejected before any request: %s', async (_, args) => {
    const model = echo()
    expect(await told(args, model)).toMatchObject({ ok: false, metadata: { error_type: 'ValidationError' } })
    expect(model.requests).toEqual([])
  })

  test('PL-05 blank optional strings count as omitted', async () => {
    const model = echo()
    const { content } = await told({ ...inline('a'), system: '', output_file: '' }, model)
    expect(content).toContain('"results"')
    expect(model.requests[0]?.constants.instructions).toBe('')
  })

  test('PL-06 path policies and the limit on prompts are checked before any request', async () => {
    const root = await folderWith({ 'in.json': '["a"]', 'own/in.json': '["a"]' })
    const model = echo()
    const policies = { readPaths: ['own'], writePaths: ['own'] }
    const failures = [
      await told(file('in.json'), model, { root, options: policies }),
      await told({ ...file('own/in.json'), output_file: 'out.json' }, model, { root, options: policies }),
      await told({ ...inline('a'), output_file: '../out.json' }, model, { root }),
      await told(inline('a', 'b'), model, { root, options: { maxPrompts: 1 } }),
    ]
    expect(failures.map(({ content, metadata }) => [metadata['error_type'], content])).toEqual([
      ['PathValidationError', 'path is not in the read paths: in.json'],
      ['PathValidationError', 'path is not in the write paths: out.json'],
      ['PathValidationError', 'path escapes root: ../out.json'],
      ['ValueError', 'parallel_llm prompts exceed configured limit 1'],
    ])
    expect(model.requests).toEqual([])
  })

  test('PL-27 an output path that is a directory fails the call, and no file is written', async () => {
    const root = await folderWith()
    await mkdir(join(root, 'out.json'))
    expect(await told({ ...inline('a'), output_file: 'out.json' }, echo(), { root })).toMatchObject({
      ok: false,
      metadata: { error_type: 'PathTypeError' },
    })
    expect(readdirSync(root)).toEqual(['out.json'])
    expect(readdirSync(join(root, 'out.json'))).toEqual([])
  })
})

describe('attempts', () => {
  test('PL-07 a retryable failure is retried with a fresh conversation, and every attempt is counted', async () => {
    let asked = 0
    const model = answering(() => (++asked < 3 ? busy() : 'At last.'))
    const { content } = await told(inline('a'), model)
    expect(JSON.parse(content)).toMatchObject({
      model_requests: 3,
      results: [{ index: 0, ok: true, result: 'At last.' }],
    })
    expect(model.requests.map(({ transcriptLength }) => transcriptLength)).toEqual([1, 1, 1])
    asked = -1_000
    const { content: failed } = await told(inline('a'), model, { options: { maxAttempts: 2 } })
    expect(JSON.parse(failed)).toMatchObject({
      model_requests: 2,
      results: [{ index: 0, ok: false, error: 'It is busy.' }],
    })
  })

  test('PL-08 a failure that is not retryable is not retried', async () => {
    const model = answering(() => new HarnessError('provider_error', 'Never.', { status: 401 }))
    expect(JSON.parse((await told(inline('a'), model)).content)).toMatchObject({ failed: 1, model_requests: 1 })
  })

  test('PL-28 the delay is the one the provider asks for; otherwise it doubles from one second, with up to a quarter of jitter', async () => {
    expect([0, 1, 2, 3].map((attempt) => retryDelayMs(attempt, undefined, 0))).toEqual([1_000, 2_000, 4_000, 8_000])
    expect(retryDelayMs(1, undefined, 1)).toBe(2_500)
    expect(retryDelayMs(0, 7, 1)).toBe(7)
    expect(retryDelayMs(0, 3_600_000, 1)).toBe(60_000)
  })

  test('PL-09 the number of concurrent requests never exceeds `max_concurrency`', async () => {
    let [now, peak] = [0, 0]
    const model = answering(async (prompt) => {
      peak = Math.max(peak, ++now)
      for (let tick = 0; tick < 3; tick++) await new Promise((resolve) => setImmediate(resolve))
      now -= 1
      return prompt
    })
    const prompts = Array.from({ length: 20 }, (_, index) => `p${index}`)
    await told({ ...inline(...prompts), max_concurrency: 3 }, model)
    expect(peak).toBe(3)
  })

  test('PL-26 cancelling the run cancels all requests', async () => {
    const begun = gate()
    const model = answering(() => {
      begun.open()
      return new Promise<string>(() => undefined)
    })
    const controller = new AbortController()
    const run = calling(inline('a', 'b', 'c'), model).run('Go.', { signal: controller.signal })
    await begun.opened
    controller.abort()
    expect((await failureOf(run)).code).toBe('cancelled')
  })

  test('progress is reported per entry, and every prompt appears as a run in the events', async () => {
    const events = await eventsOf(calling(inline('a', 'b'), echo()).stream('Go.'))
    expect(ofKind(events, 'tool_progress').map(({ update }) => update)).toEqual([
      { done: 1, failed: 0, total: 2 },
      { done: 2, failed: 0, total: 2 },
    ])
    expect(ofKind(events, 'run_started').map(({ agentName }) => agentName)).toEqual([
      null,
      'parallel_llm',
      'parallel_llm',
    ])
  })

  test('answers from before a crash are not requested again, in whatever order they arrived', async () => {
    const log = watchedLog()
    const args = { ...inline('a', 'b', 'c', 'flaky'), max_concurrency: 2 }
    const asked: string[] = []
    const model = () =>
      answering((prompt) => {
        asked.push(prompt)
        return prompt === 'flaky' && asked.filter((each) => each === 'flaky').length === 1 ? busy() : `<${prompt}>`
      })
    const whole = await resultOf(args, model(), { beside: { log } })
    const { runId } = whole
    for (let cut = 1; cut < log.kept.length; cut++) {
      asked.length = 0
      const kept = log.kept.slice(0, cut)
      const answered = kept.filter(
        ({ kind, agentName }) => kind === 'model_message' && agentName === 'parallel_llm',
      ).length
      const beside = {
        log: await logWith(kept),
        model: new ScriptedModel().always(({ turn }) =>
          turn === 0 ? { calls: [{ name: 'parallel_llm', arguments: args }] } : 'Done.',
        ),
      }
      const again = await calling(args, model(), { beside }).recover(runId)
      const read = (result: HarnessResult) =>
        (JSON.parse(envelopeIn(result.toolCallRecords[0]).content) as { results: unknown }).results
      expect(read(again)).toEqual(read(whole))
      // Four prompts, and one of them a second time.
      expect(asked.length).toBeLessThanOrEqual(5 - answered)
    }
  })
})

test('PL-08 an entry that failed for good is not retried after a crash', async () => {
  const log = watchedLog()
  const model = answering(() => new HarnessError('provider_error', 'No.', { status: 401 }))
  const { runId } = await resultOf(inline('a'), model, { beside: { log } })
  const failed = log.kept.findIndex(({ kind }) => kind === 'run_failed')
  expect(log.kept[failed]).toMatchObject({ status: 401 })
  const beside = { log: await logWith(log.kept.slice(0, failed + 1)), model: new ScriptedModel().says('Done.') }
  await calling(inline('a'), model, { beside }).recover(runId)
  expect(model.requests.length).toBe(1)
})

describe('structured answers', () => {
  const n = z.object({ n: z.number() })
  const structured = (outputMode: NonNullable<ParallelLlmOptions['outputMode']>, outputRetries = 1): Asked => ({
    options: { outputType: n, outputMode, outputRetries },
  })

  test('PL-12 PL-13 PL-14 in prompted mode the schema follows the system text, and an invalid answer is corrected up to the limit of retries', async () => {
    const model = answering((prompt, turn) =>
      prompt === 'bad' || (prompt === 'late' && turn === 0) ? '{"n":"x"}' : '{"n":1}',
    )
    const args = { ...inline('good', 'late', 'bad'), system: 'Count.' }
    const [good, late, bad] = (await entries(args, model, structured('prompted'))) as { error?: string }[]
    expect([good, late]).toEqual([
      { index: 0, ok: true, result: { n: 1 } },
      { index: 1, ok: true, result: { n: 1 } },
    ])
    expect(bad?.error).toMatch(/^The final answer did not fit after 1 corrective request: /)
    expect(model.requests[0]?.constants.instructions).toMatch(/^Count\.\n\n[^]*"n"/)
    const once = (await entries(inline('bad'), model, structured('prompted', 0))) as { error?: string }[]
    expect(once[0]?.error).toMatch(/^The final answer did not fit after 0 corrective requests: /)
  })

  test('PL-15 PL-16 PL-19 in tool mode the answer comes by `final_result`, which is the only tool offered', async () => {
    const answer = { name: 'final_result', arguments: { n: 1 } }
    const model = answering((prompt) =>
      prompt === 'text' ? 'One.' : { calls: prompt === 'twice' ? [answer, answer] : [answer] },
    )
    const [one, text, twice] = (await entries(
      inline('one', 'text', 'twice'),
      model,
      structured('tool', 0),
    )) as JsonObject[]
    expect(one).toEqual({ index: 0, ok: true, result: { n: 1 } })
    expect(text).toMatchObject({ ok: false })
    expect(twice).toMatchObject({ ok: false })
    expect(model.requests[0]?.constants.tools.map(({ name }) => name)).toEqual(['final_result'])
  })

  test('PL-11 PL-17 PL-18 a call of any other tool fails its entry', async () => {
    const model = answering((_, turn) =>
      turn === 0 ? { calls: [{ name: 'search' }] } : { text: '{"n":1}', calls: [] },
    )
    const error = 'The model called a tool that it does not have: prompts are answered without tools.'
    for (const asked of [{}, structured('prompted')]) {
      expect(await entries(inline('a'), model, asked)).toEqual([{ index: 0, ok: false, error }])
    }
    const byTool = answering((_, turn) => ({
      calls: [turn === 0 ? { name: 'search' } : { name: 'final_result', arguments: { n: 1 } }],
    }))
    expect(await entries(inline('a'), byTool, structured('tool'))).toEqual([{ index: 0, ok: false, error }])
  })

  test("PL-20 PL-21 native mode sends the schema in the request, and auto mode follows the model's capabilities", async () => {
    for (const mode of ['native', 'auto'] as const) {
      const capabilities = { supportsJsonSchemaOutput: true, defaultStructuredOutputMode: 'native' } as const
      const model = new ScriptedModel({ capabilities }).always('{"n":2}')
      expect(await entries(inline('a'), model, structured(mode))).toEqual([{ index: 0, ok: true, result: { n: 2 } }])
      expect(model.requests[0]?.constants).toMatchObject({ tools: [], structuredOutput: { schema: {} } })
    }
    const plain = new ScriptedModel().always('{"n":2}')
    const { ok } = await told(inline('a', 'b'), plain, structured('native'))
    expect([ok, plain.requests]).toEqual([false, []])
  })

  test('PL-22 PL-23 an unknown output mode, and text mode with a structured type, are rejected when the tool is created', () => {
    for (const outputMode of ['json', 'text']) {
      expect(() => parallelLlm({ outputType: n, outputMode: outputMode as never })).toThrow(
        'Expected `outputMode` of `parallelLlm` to be one of `auto`, `native`, `tool`, `prompted`',
      )
    }
    expect(() => parallelLlm({ maxAttempts: 11 })).toThrow('a whole number from 1 to 10')
    expect(() => parallelLlm({ maxPrompt: 1 } as never)).toThrow('Unknown option of `parallelLlm`')
  })
})

describe('the tool', () => {
  test('PL-29 the tool has the name and the description that its options give it', () => {
    const { name, description, instructions } = parallelLlm({ name: 'ask_many', description: 'Asks.' })
    expect([name, description, instructions?.startsWith('`ask_many`')]).toEqual(['ask_many', 'Asks.', true])
  })

  test("PL-24 PL-30 without a model of its own the tool asks the caller's model and leaves it open; the built-in tool returns plain text, even if it is JSON", async () => {
    let closed = 0
    const scripted = new ScriptedModel().calls('parallel_llm', inline('x')).says('{"a":1}').says('Done.')
    const model = Object.assign(scripted, {
      close: async () => {
        closed++
      },
    })
    await using harness = new Harness({ model, builtinTools: ['parallel_llm'] })
    const result = await harness.run('Go.')
    expect(JSON.parse(envelopeIn(result.toolCallRecords[0]).content)).toMatchObject({
      results: [{ result: '{"a":1}' }],
    })
    expect(closed).toBe(0)
  })

  test('PL-31 the tool is opt-in, adds its instructions to the prompt, and is suggested for a misspelled built-in name', async () => {
    const model = new ScriptedModel().says('Done.')
    const root = await folderWith()
    await new Harness({ model, root, builtinTools: ['parallel_llm'] }).run('Go.')
    expect(model.requests[0]?.constants.tools.map(({ name }) => name)).toEqual(['parallel_llm'])
    expect(model.requests[0]?.constants.instructions).toContain('use it only for independent prompts')
    expect(() => new Harness({ builtinTools: ['parallel_lm' as never] })).toThrow('Did you mean `parallel_llm`?')
    expect(existsSync(join(root, '.thinharness'))).toBe(false)
  })
})
