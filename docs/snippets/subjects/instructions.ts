import { readFile } from 'node:fs/promises'
import { defineExtension, Harness } from 'thinharness'

/** Facts that change: told before each request, behind the conversation, so that the prompt cache stays valid. */
const clock = defineExtension({
  name: 'clock',
  notices: () => [{ name: 'today', text: `Today is ${new Date().toISOString().slice(0, 10)}.` }],
})

/** The system prompt is a file; that of one run names the customer. */
export async function answer(prompt: string, customer: string): Promise<string> {
  const instructions = await readFile('prompts/support.md', 'utf8')
  await using harness = new Harness({ model: 'anthropic:claude-sonnet-5', instructions, use: [clock] })
  const result = await harness.run(prompt, { instructions: `${instructions}\nYou talk to ${customer}, in German.` })
  return result.text
}
