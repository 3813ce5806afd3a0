import { Harness } from 'thinharness'
import { localTraces } from 'thinharness/tracing'

const redact = (text: string): string => text.replaceAll(/[\w.+-]+@[\w-]+\.\w+/g, '[e-mail]')

await using harness = new Harness({
  model: 'anthropic:claude-sonnet-5',
  root: './notes',
  tracing: [localTraces({ dir: './traces', redact })],
})
const result = await harness.run('Who asked for a refund?')

console.log(result.text)
