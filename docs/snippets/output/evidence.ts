import { evidence, Harness } from 'thinharness'
import { z } from 'zod'

const source = z
  .object({ file: z.string(), from_line: z.number(), to_line: z.number().optional(), quote: z.string() })
  .meta(evidence)

await using harness = new Harness({
  model: 'openai:gpt-5.5',
  root: './notes',
  outputType: z.object({ claims: z.array(z.object({ claim: z.string(), source })) }),
})
const { output } = await harness.run('What do customers complain about?')

for (const { claim, source } of output.claims) console.log(`${claim} (${source.file}:${source.from_line})`)
