// The package, over its default transport.
import { defineTool, Harness } from 'thinharness'
import { openaiCompatible } from 'thinharness/providers'
import { INSTRUCTIONS, MODEL } from '../work.js'

/** @param {import('../work.js').Setting} setting @returns {import('../work.js').Contender} */
export function open(setting) {
  const harness = openHarness(setting)
  return {
    async ask(prompt) {
      const { text } = await harness.run(prompt)
      return text
    },
    async listen(prompt, onText) {
      const stream = harness.stream(prompt, { deltas: true })
      for await (const event of stream) if (event.kind === 'text_delta') onText(event.text)
      const { text } = await stream.result
      return text
    },
  }
}

/** The same, with the events read in batches. @param {import('../work.js').Setting} setting */
export function openBatches(setting) {
  const harness = openHarness(setting)
  return {
    ...open(setting),
    /** @type {import('../work.js').Contender['listen']} */
    async listen(prompt, onText) {
      const stream = harness.stream(prompt, { deltas: true })
      for await (const events of stream.batches()) {
        for (const event of events) if (event.kind === 'text_delta') onText(event.text)
      }
      const { text } = await stream.result
      return text
    },
  }
}

/** @param {import('../work.js').Setting} setting */
function openHarness({ baseUrl, tool }) {
  const { name, description, parameters, handler } = tool
  return new Harness({
    model: openaiCompatible(MODEL, { baseUrl }),
    instructions: INSTRUCTIONS,
    builtinTools: [],
    tools: [
      defineTool({ name, description, parameters, handler: (args) => handler(/** @type {{ id: string }} */ (args)) }),
    ],
    limits: { modelRequests: null },
  })
}
