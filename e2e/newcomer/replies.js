/** What the model says on the page "Getting started". */
export function answer({ heard, messages }) {
  const said = JSON.stringify(messages)
  if (heard.kind !== 'tool_outputs') {
    if (said.includes('rivers')) return 'The Nile, the Congo and the Niger.'
    const number = [...said.matchAll(/[Oo]rder (\d{4})/g)].at(-1)?.[1] ?? '1043'
    return { calls: [{ name: 'find_order', arguments: JSON.stringify({ number }) }] }
  }
  const content = heard.outputs.at(-1)?.content ?? ''
  if (content.includes('Refunded')) return 'The 20 dollars are on their way back.'
  if (said.includes('Pay it back'))
    return { calls: [{ name: 'refund', arguments: JSON.stringify({ number: '1043', dollars: 20 }) }] }
  return `The order: ${content}`
}
