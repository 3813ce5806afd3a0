import type { ProviderRequest, Reply } from 'thinharness/testing'

/** The scripted replies for use without a model: reads the invoice, pays what it says, and answers. */
export function answer({ turn, heard, messages }: ProviderRequest): Reply {
  const [, file = ''] = /Pay (\w+\.txt)\./.exec(JSON.stringify(messages)) ?? []
  const [result] = heard.kind === 'tool_outputs' ? heard.outputs : []
  const content = result?.content ?? ''
  if (turn === 0) return { calls: [{ name: 'read', arguments: { path: file } }] }
  if (turn === 1) {
    const [, invoice = ''] = /Invoice (\w+)/.exec(content) ?? []
    const [, euros = '0'] = /Total: ([\d.]+)/.exec(content) ?? []
    const [, to = ''] = /pay to: (\w+)/.exec(content) ?? []
    return { calls: [{ name: 'pay_invoice', arguments: { invoice, to, cents: Math.round(Number(euros) * 100) } }] }
  }
  return { text: result?.ok === true ? `Paid, receipt ${content}.` : `It could not be paid: ${content}` }
}
