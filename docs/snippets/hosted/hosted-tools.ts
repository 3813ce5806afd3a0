import { Harness } from 'thinharness'
import { codeExecution, webSearch } from 'thinharness/providers'

await using harness = new Harness({
  model: 'anthropic:claude-sonnet-5',
  tools: [webSearch({ allowedDomains: ['example.org'], maxUses: 3 }), codeExecution()],
  limits: { costUsd: 0.5 },
})
const { text, sources, transcript, usage } = await harness.run('What is new, and how much is it per month?')
console.log(text, usage.hostedCalls)
for (const { url, title, partId } of sources) console.log(`${partId}: ${title ?? url} ${url}`)
for (const entry of transcript)
  if (entry.role === 'assistant')
    for (const part of entry.parts) if (part.type === 'hosted') console.log(part.name, part.source, part.arguments)
