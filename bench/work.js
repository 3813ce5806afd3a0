// What every contender does: the tool, the prompt that tells the provider what to answer, and the checks of the answers.

/**
 * What a process has to do. Runs ask `turns` times: every reply but the last calls the tool, the last is the answer.
 * @typedef {object} Work
 * @property {number} runs Measured runs.
 * @property {number} turns Requests of a run.
 * @property {number} [warmUp] Runs before the measured ones. Default 0.
 * @property {boolean} [together] All runs at once, in place of one after the other.
 * @property {number} [calls] Tool calls of a reply. Default 1.
 * @property {number} [resultChars] Length of a tool's result. Default 100.
 * @property {number} [argumentChars] Length of the argument of a call. Default 10.
 * @property {number} [toolMs] Time that the tool takes. Default 0.
 * @property {number} [latencyMs] Time that the provider takes. Default 0.
 * @property {number} [deltas] Pieces of text of which the answer consists. Default 1.
 * @property {boolean} [streamed] Replies are streamed.
 * @property {boolean} [marked] CPU time is taken at each tool call, which costs some of it.
 * @property {boolean} [weighed] What is held is weighed at the last tool call, which costs time.
 */

/**
 * What it took.
 * @typedef {object} Report
 * @property {number} cpuMs User and system time of the measured runs, all threads.
 * @property {number} wallMs
 * @property {number} processCpuMs Since the process began.
 * @property {number} peakMb Largest resident size so far.
 * @property {number} grownKb By how much the measured runs raised it.
 * @property {number} deltas Pieces of text or arguments that came.
 * @property {number} heldKb What the last run held at its last tool call; 0 if it was not weighed.
 * @property {number} payloadKb The transcript of the last run as JSON; 0 for who does not say.
 * @property {readonly number[]} marks CPU time in ms at each tool call, of the last run.
 */

/**
 * A way to talk to the provider.
 * @typedef {object} Contender
 * @property {(prompt: string) => Promise<string>} ask One run; gives the text of its answer.
 * @property {(prompt: string, onDelta: (text: string) => void) => Promise<string>} listen The same, streamed: each piece of
 *   text and of arguments is told.
 * @property {() => number} [payload] Bytes of the last run's transcript as JSON.
 */

/**
 * @typedef {object} Setting
 * @property {string} baseUrl
 * @property {Tool} tool
 */

/** @typedef {ReturnType<typeof makeTool>} Tool */

export const MODEL = 'bench'
export const INSTRUCTIONS = 'You look things up.'

/** @param {Work} work */
export function makeTool({ turns, resultChars = 100, toolMs = 0, marked = false, weighed = false }) {
  const result = 'x'.repeat(resultChars)
  let calls = 0
  const tool = {
    /** CPU time in ms at each call. */
    marks: /** @type {number[]} */ ([]),
    /** Bytes on the heap at the last call of the last run. */
    held: 0,
    name: 'lookup',
    description: 'Finds one thing by its id.',
    parameters: {
      type: 'object',
      properties: { id: { type: 'string', description: 'Its id.' } },
      required: ['id'],
      additionalProperties: false,
    },
    handler: async (/** @type {{ id: string }} */ { id }) => {
      if (id === '') throw new Error('Expected an id.')
      if (marked) tool.marks.push(cpuMs())
      if (weighed && ++calls % (turns - 1) === 0) tool.held = heapBytes()
      if (toolMs > 0) await new Promise((resolve) => setTimeout(resolve, toolMs))
      return result
    },
  }
  return tool
}

/** What cannot be thrown away. */
export function heapBytes() {
  globalThis.gc?.()
  return process.memoryUsage().heapUsed
}

/** User and system time of this process, in ms. */
export function cpuMs() {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

/**
 * The prompt names the run, and says how the provider is to answer it.
 * @param {string} run
 * @param {Work} work
 */
export function promptOf(run, { turns, calls = 1, argumentChars = 10, resultChars = 100, deltas = 1, latencyMs = 0 }) {
  return `bench ${[run, turns, calls, argumentChars, resultChars, deltas, latencyMs].join(' ')} end`
}

/** The same, found by the provider at the start of a request's body. @param {string} text */
export function readPrompt(text) {
  const found = /bench (\w+) ([\d ]+) end/.exec(text)
  if (found === null) throw new Error(`Expected the prompt of a benchmark, got \`${text.slice(0, 200)}\`.`)
  const [, run = '', numbers = ''] = found
  const [turns = 1, calls = 1, argumentChars = 1, resultChars = 1, deltas = 1, latencyMs = 0] = numbers
    .split(' ')
    .map(Number)
  return { run, turns, calls, argumentChars, resultChars, deltas, latencyMs }
}

/** The text that is streamed in so many pieces. @param {number} deltas */
export function answerOf(deltas) {
  return Array.from({ length: deltas }, () => 'word').join(' ')
}

/**
 * The arguments of a call as a careful loop checks them.
 * @param {string} text
 * @returns {{ id: string }}
 */
export function checkedArguments(text) {
  /** @type {unknown} */
  const args = JSON.parse(text)
  const isValid = typeof args === 'object' && args !== null && 'id' in args && typeof args.id === 'string'
  if (!isValid) throw new Error(`Expected an id, got \`${text.slice(0, 200)}\`.`)
  return /** @type {{ id: string }} */ (args)
}
