import { describe, expect, test } from 'vitest'
import { ScriptedModel } from 'thinharness/testing'
import { subagent } from 'thinharness/tools'
import { harnessOf, tool } from '../../harness/support.js'

function promptsIn(model: ScriptedModel): string[] {
  return model.requests.map(({ entries }) => JSON.stringify(entries[0]))
}

async function delegated(history: unknown, task = 'Count the blue herons again.') {
  const child = new ScriptedModel().says('Three.')
  const model = new ScriptedModel()
    .calls('look', { at: 'lake' })
    .calls('look', { at: 'city' })
    .calls('subagent', { agent: 'counter', task })
    .says('Done.')
  const seen = ['A lake with herons. ' + 'Reeds. '.repeat(20), 'A city. ' + 'Houses. '.repeat(400)]
  const agents = [
    { name: 'counter', description: 'Counts.', tools: [], model: child, ...(history !== undefined && { history }) },
  ] as never
  const look = tool('look', () => seen.shift() ?? '')
  await harnessOf({ model, tools: [look, subagent({ agents, defaultAgent: false })] }).run('Watch the birds.')
  return { prompt: promptsIn(child)[0] ?? '', tools: model.requests[0]?.constants.tools ?? [] }
}

describe('a slice of the conversation for a subagent', () => {
  test('XC-38 it has the most relevant and the latest entries, before the task', async () => {
    const { prompt, tools } = await delegated({ tokens: 300 })
    expect(prompt).toContain('Parts of the conversation that led to this task')
    expect(prompt).toContain('A lake with herons.')
    expect(prompt).toContain('Your task:\\nCount the blue herons again.')
    expect(JSON.stringify(tools)).toContain('it knows parts of this conversation')
  })

  test.each([100, 300, 2000])('XC-39 it is within its tokens: %d', async (tokens) => {
    const { prompt } = await delegated({ tokens }, 'Count.')
    const text = (JSON.parse(prompt) as { content: { text: string }[] }).content[0]?.text ?? ''
    expect(text.length).toBeLessThanOrEqual(tokens * 4 + 'Count.'.length)
  })

  test.each([undefined, 'none'])('XC-40 without one, a subagent knows only its task: %s', async (history) => {
    const { prompt } = await delegated(history)
    expect(prompt).not.toContain('herons.')
    expect(prompt).toContain('Count the blue herons again.')
  })

  test('XC-40 a slice has at least 100 tokens', () => {
    const wrong = { name: 'f', description: 'Forks.', tools: [], history: { tokens: 3 } } as const
    expect(() => subagent({ agents: [wrong] })).toThrow('history')
  })
})
