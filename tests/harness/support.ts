import { expect } from 'vitest'
import { defineTool, Harness, HarnessError } from 'thinharness'
import type {
  HarnessOptions,
  HarnessStream,
  JsonObject,
  RunEvent,
  StreamEvent,
  ToolContext,
  ToolSpec,
} from 'thinharness'
import type { HeardOutput } from 'thinharness/testing'

/** A harness without the built-in tools. */
export function harnessOf<Output = string>(options: HarnessOptions<Output>): Harness<Output> {
  return new Harness<Output>({ builtinTools: [], ...options })
}

type Beside = Partial<Omit<ToolSpec, 'name' | 'description' | 'parameters' | 'call' | 'validate'>>

/** A tool that takes any object. */
export function tool(
  name: string,
  handler: (args: JsonObject, context: ToolContext) => unknown = () => 'ok',
  beside: Beside = {},
): ToolSpec {
  return defineTool({ name, description: `The tool ${name}.`, parameters: { type: 'object' }, handler, ...beside })
}

/** What a model hears of a call. */
export function output(callId: string, content: string, { ok = true }: { ok?: boolean } = {}): HeardOutput {
  return { callId, ok, content }
}

/** All events of a stream; its failure is thrown behind them, so it is given back here. */
export async function told(
  stream: HarnessStream<unknown>,
): Promise<{ readonly events: StreamEvent[]; readonly thrown: unknown }> {
  const events: StreamEvent[] = []
  try {
    for await (const event of stream) events.push(event)
  } catch (thrown) {
    return { events, thrown }
  }
  return { events, thrown: undefined }
}

export async function eventsOf(stream: HarnessStream<unknown>): Promise<StreamEvent[]> {
  return (await told(stream)).events
}

export function ofKind<Event extends RunEvent, Kind extends Event['kind']>(
  events: readonly Event[],
  kind: Kind,
): Extract<Event, { kind: Kind }>[] {
  return events.filter((event): event is Extract<Event, { kind: Kind }> => event.kind === kind)
}

/** Kinds in order, joined by a space. */
export function kinds(events: readonly { readonly kind: string }[]): string {
  return events.map((event) => event.kind).join(' ')
}

/** The error that a run rejects with. */
export async function failureOf(
  run: Promise<unknown>,
): Promise<HarnessError & { run: NonNullable<HarnessError['run']> }> {
  const error = await run.then(
    (value) => expect.fail(`Expected a failure, got ${JSON.stringify(value)}.`),
    (thrown: unknown) => thrown,
  )
  expect(error).toBeInstanceOf(HarnessError)
  return error as HarnessError & { run: NonNullable<HarnessError['run']> }
}

/** A promise to be settled from outside. */
export interface Gate<T = void> {
  readonly opened: Promise<T>
  open(value: T): void
}

export function gate<T = void>(): Gate<T> {
  let open: (value: T) => void = () => undefined
  const opened = new Promise<T>((resolve) => (open = resolve))
  return { opened, open }
}

/** Resolves once `condition` holds; the test's own time limit is the limit. */
export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve))
}

/** Lets everything that is ready to happen happen. */
export async function ticks(count = 20): Promise<void> {
  for (let index = 0; index < count; index++) await new Promise((resolve) => setImmediate(resolve))
}

/** Rejects with `thrown`, which need not be an error. */
export async function rejects(thrown: unknown): Promise<never> {
  throw thrown
}

/** The notices of limits as the model reads them. */
export function limitNotices(...contents: readonly string[]): string {
  return contents.map((content) => `<harness_notice kind="limit_warning">\n${content}\n</harness_notice>`).join('\n\n')
}

export const LAST_REQUEST = 'This is the final model request of this run: answer now, and request no tools.'
export const NO_CALLS_LEFT = 'No tool calls remain: answer now without tools.'
