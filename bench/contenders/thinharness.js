// The package, over its default transport.
import { defineTool, Harness } from 'thinharness'
import { INSTRUCTIONS, MODEL } from '../work.js'

/** @param {import('../work.js').Setting} setting @returns {import('../work.js').Contender} */
export function open(setting) {
  const harness = openHarness(setting)
  return {
    async ask(prompt) {
      const { text } = await harness.run(prompt)
      return text
    },
    async listen(prompt, onDelta) {
      const stream = harness.stream(prompt, { deltas: true })
      for await (const event of stream) tell(event, onDelta)
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
    async listen(prompt, onDelta) {
      const stream = harness.stream(prompt, { deltas: true })
      for await (const events of stream.batches()) {
        for (const event of events) tell(event, onDelta)
      }
      const { text } = await stream.result
      return text
    },
  }
}

/** @param {import('thinharness').RunEvent} event @param {(text: string) => void} onDelta */
function tell(event, onDelta) {
  if (event.kind === 'text_delta' || event.kind === 'tool_input_delta') onDelta(event.text)
}

/** @param {import('../work.js').Setting} setting */
function openHarness({ baseUrl, tool }) {
  const { name, description, parameters, handler } = tool
  return new Harness({
    model: `local:${MODEL}@${baseUrl}`,
    instructions: INSTRUCTIONS,
    builtinTools: [],
    tools: [
      defineTool({ name, description, parameters, handler: (args) => handler(/** @type {{ id: string }} */ (args)) }),
    ],
    limits: { modelRequests: null },
  })
}
