import type { ProviderRequest, Reply } from 'thinharness/testing'

/** The scripted replies for use without a model. */
export function answer({ turn, heard, messages }: ProviderRequest): Reply {
  const [, report = '', customer = ''] = /Deliver report ([\w-]+) to (\w+)\./.exec(JSON.stringify(messages)) ?? []
  const [result] = heard.kind === 'tool_outputs' ? heard.outputs : []
  if (turn === 0) return { calls: [{ name: 'read_numbers', arguments: { customer } }] }
  if (turn === 1) {
    const text = `Sales of ${customer}: ${result?.content ?? ''}.`
    return { calls: [{ name: 'deliver_report', arguments: { report, customer, text } }] }
  }
  return { text: result?.content ?? '' }
}
