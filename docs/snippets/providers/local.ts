import { Harness } from 'thinharness'
import { openaiCompatible, probe } from 'thinharness/providers'

const baseUrl = process.env['LOCAL_URL'] ?? 'http://127.0.0.1:8080/v1'

const { capabilities, checks } = await probe(openaiCompatible('qwen3', { baseUrl }))
for (const [name, check] of Object.entries(checks)) {
  console.log(`${name}: ${check.found}${check.found === 'yes' ? '' : ` (${check.because})`}`)
}

await using harness = new Harness({ model: openaiCompatible('qwen3', { baseUrl, capabilities }) })
console.log((await harness.run('Name three rivers in Kenya.')).text)
