import { Harness } from 'thinharness'
import { policy } from 'thinharness/policy'
import { connector, webFetch } from 'thinharness/providers'

const wiki = connector({
  name: 'wiki',
  url: 'https://wiki.example/mcp',
  authorization: process.env['WIKI_TOKEN'],
  allowedTools: ['read_page'],
})
const harness = new Harness({
  model: 'openai:gpt-5.5',
  tools: [wiki, webFetch()],
  use: [policy([{ decision: 'deny', tool: 'web_fetch' }])],
})
for await (const event of harness.stream('Summarise the page about tides.'))
  if (event.kind === 'warning') console.log(event.message)
