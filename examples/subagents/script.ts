import type { ProviderRequest, Reply } from 'thinharness/testing'

/** The scripted replies for use without a model: of the main run, and of its readers. */
export function answer(request: ProviderRequest): Reply {
  return request.tools.includes('subagent') ? top(request) : reader(request)
}

function top({ turn, heard }: ProviderRequest): Reply {
  if (turn === 0) return { calls: [{ name: 'list', arguments: { path: '.' } }] }
  if (turn === 1) {
    const task = (note: string): string => `Which deadline does ${note} mention?`
    return {
      calls: ['storm.md', 'tins.md'].map((note) => ({
        name: 'subagent',
        arguments: { agent: 'reader', task: task(note) },
      })),
    }
  }
  const found = heard.kind === 'tool_outputs' ? heard.outputs.map(({ content }) => content) : []
  const dated = found.filter((each) => !each.includes('null')).length
  return { text: `${dated} of ${found.length} notes mentions a deadline.` }
}

function reader({ turn, messages }: ProviderRequest): Reply {
  const note = /storm\.md|tins\.md/.exec(JSON.stringify(messages))?.[0] ?? ''
  if (turn === 0) return { calls: [{ name: 'read', arguments: { path: note } }] }
  const deadline = /by (\w+ \d+)/.exec(JSON.stringify(messages.at(-1)))?.[1] ?? null
  return { calls: [{ name: 'final_result', arguments: { note, deadline } }] }
}
