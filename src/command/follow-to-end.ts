import { createInterface } from 'node:readline'
import type {
  Harness as HarnessOf,
  HarnessResult,
  HarnessStream,
  PendingItem,
  RunOptions,
  RunSummary,
} from '../index.js'
import { CommandError, EXIT, exitCodeOf } from './exit-codes.js'
import { askPeople } from './terminal/people.js'
import { RunTree } from './terminal/run-tree.js'
import { costText, counted, countText, visible } from './terminal/terminal.js'
import type { Terminal } from './terminal/terminal.js'

export interface ConductOptions {
  readonly harness: HarnessOf<unknown>
  readonly options: RunOptions
  readonly terminal: Terminal
  /** Events as JSON, one a line, in place of the tree and the answer. */
  readonly json?: boolean | undefined
  /** With `json`: deltas too. */
  readonly deltas?: boolean | undefined
  /** Of a run that goes on: its turns so far. */
  readonly turns?: Pick<RunSummary, 'runId' | 'usage'> | undefined
}

/**
 * Follows a run to its end, and asks people what it waits for: the answer goes to stdout, all else to stderr. Ctrl-C cancels the run,
 * twice ends the process. Gives the code for the shell.
 */
export async function conduct(
  begin: (options: RunOptions) => HarnessStream<unknown>,
  given: ConductOptions,
): Promise<number> {
  const { harness, options, terminal, json = false } = given
  const running = { ...options, deltas: json ? given.deltas === true : terminal.isLive }
  const tree = json ? null : new RunTree(terminal, given.turns?.runId, given.turns?.usage.modelRequests)
  let start = begin
  for (;;) {
    const ended = await followed(start(running), { ...given, tree })
    if (ended.result?.status !== 'paused') return ended.exitCode
    const { runId, pending } = ended.result
    const answers = json || !terminal.canAsk ? null : await askPeople(pending, terminal)
    if (answers === null) return leave(runId, pending, given)
    start = (more) => harness.streamResumeRun(runId, answers, more)
  }
}

/** A run that waits for people, and nobody to ask. */
function leave(runId: string, pending: readonly PendingItem[], { terminal, json }: ConductOptions): number {
  if (json !== true) {
    terminal.say(`The run waits for ${pending.map(({ toolName }) => `\`${toolName}\``).join(', ')}.`)
    terminal.say(`Go on with: thinharness resume ${runId}`)
  }
  terminal.say(runId)
  return EXIT.waits
}

interface Ended {
  readonly result: HarnessResult<unknown> | null
  readonly exitCode: number
}

interface Following extends ConductOptions {
  readonly tree: RunTree | null
}

async function followed(stream: HarnessStream<unknown>, given: Following): Promise<Ended> {
  const { terminal, tree, json = false } = given
  const stop = listenToPerson(stream, tree, terminal)
  let runId = ''
  try {
    for await (const event of stream) {
      if (event.parentRunId === null) runId = event.runId
      tree?.add(event)
      if (json && (event.durable || given.deltas === true)) terminal.out(`${JSON.stringify(event)}\n`)
    }
    const result = await stream.result
    tree?.end()
    if (json) terminal.out(`${JSON.stringify({ kind: 'result', ...shortResult(result) })}\n`)
    else if (result.status !== 'paused') writeAnswer(result, terminal)
    return { result, exitCode: EXIT.done }
  } catch (error) {
    tree?.end()
    const code = codeOf(error)
    if (runId === '' && code !== undefined && exitCodeOf(code) !== EXIT.failed)
      throw new CommandError(messageOf(error), exitCodeOf(code))
    if (json)
      terminal.out(
        `${JSON.stringify({ kind: 'result', runId, status: 'failed', error: { code, message: messageOf(error) } })}\n`,
      )
    terminal.say(terminal.paint('red', visible(messageOf(error))))
    if (runId !== '') terminal.say(runId)
    return { result: null, exitCode: exitCodeOf(code) }
  } finally {
    stop()
  }
}

function writeAnswer(result: HarnessResult<unknown>, terminal: Terminal): void {
  const text = typeof result.output === 'string' ? result.output : JSON.stringify(result.output, null, 2)
  terminal.out(text.endsWith('\n') ? text : `${text}\n`)
  const { modelRequests, toolCalls, inputTokens, outputTokens, costUsd } = result.usage
  const facts = [
    counted(modelRequests, 'turn'),
    counted(toolCalls, 'call'),
    `${countText(inputTokens)} in, ${countText(outputTokens)} out`,
    costText(costUsd),
  ]
  terminal.say(terminal.paint('dim', facts.filter((fact) => fact !== '').join(' · ')))
  terminal.say(result.runId)
}

/** What a script needs of a result: the transcript is in the events. */
function shortResult(result: HarnessResult<unknown>): Record<string, unknown> {
  const { runId, status, stopReason, text, usage } = result
  const short = { runId, status, stopReason, text, usage }
  return result.status === 'paused' ? { ...short, pending: result.pending } : { ...short, output: result.output }
}

/** Ctrl-C cancels, twice ends the process; a line that is typed is steering. Gives what stops listening. */
function listenToPerson(stream: HarnessStream<unknown>, tree: RunTree | null, terminal: Terminal): () => void {
  let pressed = 0
  const interrupt = (): void => {
    pressed += 1
    if (pressed > 1) process.exit(EXIT.interrupted)
    tree?.say('Cancelling: once more ends the process.')
    void stream.cancel()
  }
  process.on('SIGINT', interrupt)
  const lines = tree === null || !terminal.canAsk ? null : createInterface({ input: terminal.stdin, terminal: false })
  lines?.on('line', (line) => {
    if (line.trim() === '') return
    try {
      stream.steer(line).catch((error: unknown) => tree?.say(visible(messageOf(error))))
      tree?.say(`› queued for the next turn: ${visible(line)}`)
    } catch {
      // The run has ended.
    }
  })
  return () => {
    process.off('SIGINT', interrupt)
    lines?.close()
    terminal.stdin.pause()
  }
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

export function codeOf(error: unknown): string | undefined {
  const isCoded = typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'string'
  return isCoded ? (error.code as string) : undefined
}
