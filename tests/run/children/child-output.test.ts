import { expect, test } from 'vitest'
import { z } from 'zod'
import { ModelRetry } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { defineSubagent, parallelLlm } from 'thinharness/tools'
import { envelopeIn } from './subagents-support.js'
import { failureOf, harnessOf, tool } from '../../harness/support.js'

const person = z.object({ name: z.string() })
const notEmpty = (text: string): void => {
  if (text === '') throw new ModelRetry('Say a name.')
}

test('SU-03 SO-12 a child run may answer in one of several types, is checked by its own validator, and corrects its answer', async () => {
  using child = new ScriptedModel()
    .calls('final_result', { value: { name: '' } })
    .calls('final_result', { value: 7 })
    .calls('final_result', { value: { name: 'Ann' } })
  using model = new ScriptedModel().calls('ask').says('Done.')
  const ask = tool('ask', async (_args, context) => {
    const run = context.spawn({
      prompt: 'Who?',
      model: child,
      outputType: [person, z.number()],
      outputRetries: 2,
      outputValidator: (answer, { runId }) => {
        if (typeof answer === 'number')
          throw new ModelRetry(`No numbers in ${runId === context.runId ? 'a parent' : 'a child'}.`)
        notEmpty(answer.name)
      },
    })
    const { output, usage } = await run.result
    return typeof output === 'number' ? 'a number' : `${output.name} after ${usage.outputRetries}`
  })
  const { toolCallRecords } = await harnessOf({ model, tools: [ask] }).run('Go.')
  expect(toolCallRecords.map((record) => envelopeIn(record).content)).toEqual(['Ann after 2'])
  expect(JSON.stringify(child.heard)).toContain('No numbers in a child.')
  expect(JSON.stringify(child.heard)).toContain('Say a name.')
})

test('SO-35 SO-15 an agent is checked by its own validator; one that is never satisfied fails only for its caller', async () => {
  using clerk = new ScriptedModel().calls('final_result', { name: '' }).calls('final_result', { name: 'Ann' })
  using writer = new ScriptedModel().says('Too long.').says('Too long again.')
  using model = new ScriptedModel()
    .callsAll([
      { name: 'subagent', arguments: { task: 'Who?', agent: 'clerk' } },
      { name: 'subagent', arguments: { task: 'Write.', agent: 'writer' } },
    ])
    .says('Done.')
  const subagents = [
    defineSubagent({
      ...{ name: 'clerk', description: 'Knows names.', tools: [], model: clerk, outputType: person },
      outputMode: 'tool',
      outputValidator: ({ name }) => notEmpty(name),
    }),
    defineSubagent({
      ...{ name: 'writer', description: 'Writes.', tools: [], model: writer },
      outputValidator: (text) => {
        throw new ModelRetry(`Shorter than ${text.length}.`)
      },
    }),
  ]
  const { toolCallRecords } = await harnessOf({ model, subagents }).run('Go.')
  expect(toolCallRecords.map((record) => envelopeIn(record))).toMatchObject([
    { ok: true, content: '{"name":"Ann"}' },
    { ok: false, metadata: { error_type: 'output_validation_failed' } },
  ])
})

test('SU-01 an invalid agent is rejected at construction, a validator of a fork in the call', async () => {
  expect(() => defineSubagent({ name: 'default', description: 'Me.', tools: [] })).toThrow('`default`')
  using model = new ScriptedModel().calls('ask').says('Done.')
  const ask = tool('ask', async (_args, context) => {
    const error = await failureOf(
      Promise.resolve().then(() => context.spawn({ prompt: 'x', history: 'fork', outputValidator: notEmpty }).result),
    )
    return error.message
  })
  const { toolCallRecords } = await harnessOf({ model, tools: [ask] }).run('Go.')
  expect(envelopeIn(toolCallRecords[0]).content).toBe(
    "With `fork` a child has its parent's `outputValidator`: leave it out.",
  )
})

test('PL-14 an entry of a batch may have several types, and is corrected with the words of a validator', async () => {
  using asked = new ScriptedModel().always(({ messages, turn }) => {
    const [prompt] = messages.flatMap((each) => (each.role === 'user' ? [each.content] : []))
    const value = prompt === 'two' ? turn + 1 : { name: turn === 0 ? '' : 'Ann' }
    return { calls: [{ name: 'final_result', arguments: { value } }] }
  })
  const batch = parallelLlm({
    model: asked,
    outputMode: 'tool',
    outputType: [person, z.number()],
    outputValidator: (answer) => {
      if (typeof answer === 'number' && answer < 2) throw new ModelRetry('Two at least.')
      if (typeof answer !== 'number') notEmpty(answer.name)
    },
  })
  const args = { source: { kind: 'inline', prompts: ['one', 'two'] } }
  using model = new ScriptedModel().calls('parallel_llm', args).says('Done.')
  const { toolCallRecords } = await harnessOf({ model, tools: [batch] }).run('Go.')
  expect(JSON.parse(envelopeIn(toolCallRecords[0]).content)).toMatchObject({
    succeeded: 2,
    model_requests: 4,
    results: [{ result: { name: 'Ann' } }, { result: 2 }],
  })
})

test('PL-13 an entry whose validator is never satisfied fails alone', async () => {
  using asked = new ScriptedModel().always(() => 'No name.')
  const outputValidator = (): never => {
    throw new ModelRetry('Name one.')
  }
  const batch = parallelLlm({ model: asked, outputValidator, outputRetries: 1 })
  using model = new ScriptedModel().calls('parallel_llm', { source: { kind: 'inline', prompts: ['a'] } }).says('Done.')
  const { toolCallRecords } = await harnessOf({ model, tools: [batch] }).run('Go.')
  expect(JSON.parse(envelopeIn(toolCallRecords[0]).content)).toMatchObject({ failed: 1, model_requests: 2 })
})
