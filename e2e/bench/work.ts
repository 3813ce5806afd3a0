// The parts that all contenders share: the tool, the prompt that tells the provider how to answer, and the checks of answers.

/** The work of one process. Runs send `turns` requests: every reply but the last calls the tool, the last is the answer. */
export interface Work {
  /** Measured runs; more of them until `leastCpuMs` are spent. */
  readonly runs: number
  /** CPU time of the measured runs, at least, in ms. Default 0. */
  readonly leastCpuMs?: number
  /** Requests of a run. */
  readonly turns: number
  /** Runs before the measured ones. Default 0. */
  readonly warmUp?: number
  /** More runs before the measured ones, until the process has spent this much CPU time, in ms. Default 0. */
  readonly warmUpCpuMs?: number
  /** All runs at once, instead of one after the other. */
  readonly together?: boolean
  /** Tool calls of a reply. Default 1. */
  readonly calls?: number
  /** Length of a tool's result. Default 100. */
  readonly resultChars?: number
  /** Length of the argument of a call. Default 10. */
  readonly argumentChars?: number
  /** Time that the tool takes. Default 0. */
  readonly toolMs?: number
  /** Time that the provider takes. Default 0. */
  readonly latencyMs?: number
  /** Pieces of text in the answer. Default 1. */
  readonly deltas?: number
  /** Replies are streamed. */
  readonly streamed?: boolean
  /** CPU time is taken at each tool call, which costs some of it. */
  readonly marked?: boolean
  /** The heap is measured at the last tool call, which costs time. */
  readonly weighed?: boolean
}

/** The measurements of one process. */
export interface Report {
  /** Measured runs. */
  readonly runs: number
  /** User and system time of the measured runs, all threads. */
  readonly cpuMs: number
  readonly wallMs: number
  /** Since the process began. */
  readonly processCpuMs: number
  /** Largest resident size so far. */
  readonly peakMb: number
  /** By how much it exceeds the resident size before the measured runs. */
  readonly grownKb: number
  /** Pieces of text or arguments received. */
  readonly deltas: number
  /** Heap of the last run at its last tool call; 0 if it was not measured. */
  readonly heldKb: number
  /** The transcript of the last run as JSON; 0 if the contender does not measure it. */
  readonly payloadKb: number
  /** CPU time in ms at each tool call, of the last run. */
  readonly marks: readonly number[]
}

/** Receives each piece of text and of arguments. */
export type OnDelta = (text: string) => void

/** A way to talk to the provider. */
export interface Contender {
  /** One run; returns the text of its answer. */
  readonly ask: (prompt: string) => Promise<string>
  /** The same, streamed. */
  readonly listen: (prompt: string, onDelta: OnDelta) => Promise<string>
  /** Bytes of the last run's transcript as JSON. */
  readonly payload?: () => number
}

export interface Setting {
  readonly baseUrl: string
  readonly tool: Tool
}

export type Tool = ReturnType<typeof makeTool>

/** How a contender is opened. */
export type Open = (setting: Setting) => Contender

export const MODEL = 'bench'
export const INSTRUCTIONS = 'You look things up.'

export function makeTool({ turns, resultChars = 100, toolMs = 0, marked = false, weighed = false }: Work) {
  const result = 'x'.repeat(resultChars)
  let calls = 0
  const tool = {
    /** CPU time in ms at each call. */
    marks: [] as number[],
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
    handler: async ({ id }: { id: string }) => {
      if (id === '') throw new Error('Expected an id.')
      if (marked) tool.marks.push(cpuMs())
      if (weighed && ++calls % (turns - 1) === 0) tool.held = heapBytes()
      if (toolMs > 0) await new Promise((resolve) => setTimeout(resolve, toolMs))
      return result
    },
  }
  return tool
}

/** Bytes on the heap after a garbage collection. */
export function heapBytes(): number {
  globalThis.gc?.()
  return process.memoryUsage().heapUsed
}

/** User and system time of this process, in ms. */
export function cpuMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

/** The fields of a prompt. */
export interface PromptFields extends Required<Pick<Work, PromptNumber>> {
  readonly run: string
}

type PromptNumber = 'turns' | 'calls' | 'argumentChars' | 'resultChars' | 'deltas' | 'latencyMs'

/** The prompt names the run, and says how the provider is to answer it. */
export function promptOf(
  run: string,
  { turns, calls = 1, argumentChars = 10, resultChars = 100, deltas = 1, latencyMs = 0 }: Work,
): string {
  return `bench ${[run, turns, calls, argumentChars, resultChars, deltas, latencyMs].join(' ')} end`
}

/** The same, found by the provider at the start of a request's body. */
export function readPrompt(text: string): PromptFields {
  const found = /bench (\w+) ([\d ]+) end/.exec(text)
  if (found === null) throw new Error(`Expected the prompt of a benchmark, got \`${text.slice(0, 200)}\`.`)
  const [, run = '', numbers = ''] = found
  const [turns = 1, calls = 1, argumentChars = 1, resultChars = 1, deltas = 1, latencyMs = 0] = numbers
    .split(' ')
    .map(Number)
  return { run, turns, calls, argumentChars, resultChars, deltas, latencyMs }
}

/** The text that is streamed in so many pieces. */
export function answerOf(deltas: number): string {
  return Array.from({ length: deltas }, () => 'word').join(' ')
}

/** The arguments of a call as a careful loop checks them. */
export function checkedArguments(text: string): { id: string } {
  const args: unknown = JSON.parse(text)
  const isValid = typeof args === 'object' && args !== null && 'id' in args && typeof args.id === 'string'
  if (!isValid) throw new Error(`Expected an id, got \`${text.slice(0, 200)}\`.`)
  return args as { id: string }
}
