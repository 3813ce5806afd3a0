// Journeys with the real providers, for what no recording can show: that they accept what the harness sends back to them.
//   OPENAI_API_KEY=… ANTHROPIC_API_KEY=… OPENROUTER_API_KEY=… npm run e2e:live
// A journey without its key is skipped, and says so. All of them together cost at most LIVE_COST_USD (default 0.25). The
// models can be chosen: LIVE_OPENAI, LIVE_ANTHROPIC, LIVE_OPENROUTER, LIVE_OPENROUTER_PLAIN, as `provider:model`.
import { describe, expect, test } from 'vitest'
import { Budget, defineExtension, defineTool, Harness } from 'thinharness'
import type { ModelRef, ModelSettings } from 'thinharness'
import { compact } from 'thinharness/context'

const MODELS = {
  openai: modelOf('LIVE_OPENAI', 'openai:gpt-5.5'),
  anthropic: modelOf('LIVE_ANTHROPIC', 'anthropic:claude-sonnet-5'),
  openrouter: modelOf('LIVE_OPENROUTER', 'openrouter:openai/gpt-5.5'),
  openrouterPlain: modelOf('LIVE_OPENROUTER_PLAIN', 'openrouter:deepseek/deepseek-r1-0528'),
}

const budget = new Budget({ costUsd: Number(process.env['LIVE_COST_USD'] ?? 0.25) })

function modelOf(variable: string, otherwise: ModelRef): ModelRef {
  return process.env[variable] ?? otherwise
}

/** A look at a number that no model can guess. */
function lookUp(secret: string) {
  return defineTool({
    name: 'look_up',
    description: 'Gives the code of a drawer.',
    parameters: { type: 'object', properties: { drawer: { type: 'integer' } }, required: ['drawer'] },
    annotations: { readOnly: true },
    handler: () => ({ code: secret }),
  })
}

function harnessOf(model: ModelRef, settings: ModelSettings, use: readonly ReturnType<typeof defineExtension>[] = []) {
  const limits = { modelRequests: 6, timeMs: 120_000 }
  return new Harness({ model, settings, use, builtinTools: [], tools: [lookUp('K7-2291')], limits })
}

const PROMPT = 'What is the code of drawer 3? Use look_up, then answer with the code alone.'

/** A notice stands behind tool results in the second request: the provider takes it, and the model acts on it. */
async function notice(model: ModelRef): Promise<void> {
  let requests = 0
  const host = defineExtension({
    name: 'host',
    notices: () => (requests++ === 0 ? [] : [{ name: 'word', text: 'End your answer with the word PELICAN.' }]),
  })
  await using harness = harnessOf(model, {}, [host])
  const { text, usage } = await harness.run(PROMPT, { budget })
  expect(text).toContain('K7-2291')
  expect(text.toUpperCase()).toContain('PELICAN')
  expect(usage.modelRequests).toBeGreaterThanOrEqual(2)
}

/** The reasoning of the first reply is sent back with the tool's result, and again in the next run of the conversation. */
async function reasoning(model: ModelRef): Promise<void> {
  await using harness = harnessOf(model, { reasoningEffort: 'low', maxOutputTokens: 4000 })
  const first = await harness.run(PROMPT, { budget })
  expect(first.text).toContain('K7-2291')
  const parts = first.transcript.flatMap((entry) => (entry.role === 'assistant' ? entry.parts : []))
  expect(parts.map(({ type }) => type)).toContain('reasoning')
  const second = await harness.run('And what was the number of the drawer? Answer with the digit alone.', {
    history: first.resumeState,
    budget,
  })
  expect(second.text).toContain('3')
}

/** The provider compacts the conversation, and accepts its compaction back as the beginning of the next requests. */
async function compaction(model: ModelRef): Promise<void> {
  const notes = 'The drawer is made of oak and has a brass handle. '.repeat(300)
  const codes = ['K7-2291', 'Q4-1187', 'B9-6653']
  const drawers = defineTool({
    name: 'look_up',
    description: 'Gives the code of a drawer, and notes about it.',
    parameters: { type: 'object', properties: { drawer: { type: 'integer' } }, required: ['drawer'] },
    annotations: { readOnly: true },
    handler: ({ drawer }) => ({ code: codes[Number(drawer) - 1], notes }),
  })
  const limits = { modelRequests: 8, timeMs: 150_000 }
  await using harness = new Harness({
    model,
    use: [compact({ at: 5_000 })],
    builtinTools: [],
    tools: [drawers],
    limits,
  })
  const prompt = 'Look up drawers 1, 2 and 3, one in each reply. Then answer with the code of drawer 3 alone.'
  const stream = harness.stream(prompt, { budget, deltas: false })
  let compactions = 0
  for await (const event of stream)
    if (event.kind === 'view_changed' && event.changes.some(({ native }) => native !== undefined)) compactions += 1
  expect(compactions).toBeGreaterThan(0)
  expect((await stream.result).text).toContain('B9-6653')
}

const JOURNEYS: readonly [string, ModelRef, (model: ModelRef) => Promise<void>][] = [
  ['PR-15 OpenAI accepts a request with a notice', MODELS.openai, notice],
  ['PR-16 Anthropic accepts tool results followed by a notice as text, and acts on it', MODELS.anthropic, notice],
  ['PR-17 OpenRouter accepts tool messages followed by a notice as a user message', MODELS.openrouter, notice],
  ['RF-21 OpenAI accepts replayed encrypted reasoning', MODELS.openai, reasoning],
  ['RF-22 Anthropic accepts replayed signed thinking', MODELS.anthropic, reasoning],
  ['RF-23 OpenRouter accepts replayed reasoning details of an encrypted model', MODELS.openrouter, reasoning],
  ['RF-23 OpenRouter accepts replayed reasoning details of a plain-text model', MODELS.openrouterPlain, reasoning],
  ['XC-50 OpenAI compacts a conversation, and accepts its compaction back', MODELS.openai, compaction],
  ['XC-50 Anthropic compacts a conversation, and accepts its compaction back', MODELS.anthropic, compaction],
]

describe('journeys with real providers', () => {
  for (const [title, model, journey] of JOURNEYS) {
    const variable = `${model.slice(0, model.indexOf(':')).toUpperCase()}_API_KEY`
    const hasKey = (process.env[variable] ?? '') !== ''
    test.skipIf(!hasKey)(`${title} (${model}${hasKey ? '' : `: needs ${variable}`})`, () => journey(model), 180_000)
  }
})
