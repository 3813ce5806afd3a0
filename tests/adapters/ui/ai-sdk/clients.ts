import { readUIMessageStream as read5, uiMessageChunkSchema as schema5, validateUIMessages as validate5 } from 'ai5'
import { readUIMessageStream as read6, uiMessageChunkSchema as schema6, validateUIMessages as validate6 } from 'ai6'
import { readUIMessageStream as read7, uiMessageChunkSchema as schema7, validateUIMessages as validate7 } from 'ai7'
import type { UIMessage } from 'ai7'
import { uiMessageProjection } from '#adapters/ui/ai-sdk/ui-projection.js'
import type { UiStreamOptions, Dialect, UiChunk } from '#adapters/ui/ai-sdk/chunk.js'
import type { AnyRunEvent } from 'thinharness/ui'

export const DIALECTS: readonly Dialect[] = [5, 6, 7]

interface Validated {
  readonly success: boolean
  readonly error?: unknown
}

/** One version of the official client. */
interface Client {
  readonly read: (options: {
    readonly message?: UIMessage
    readonly stream: ReadableStream<UiChunk>
    readonly onError: (error: unknown) => void
  }) => AsyncIterable<UIMessage>
  readonly schema: () => { readonly validate?: (value: unknown) => Validated | Promise<Validated> }
  readonly validate: (options: { readonly messages: unknown }) => Promise<unknown>
}

// The versions have types of their own for what is the same form.
const CLIENTS = {
  5: { read: read5, schema: schema5, validate: validate5 },
  6: { read: read6, schema: schema6, validate: validate6 },
  7: { read: read7, schema: schema7, validate: validate7 },
} as unknown as Readonly<Record<Dialect, Client>>

/** The chunks of a reading of events. */
export function chunksOf(events: readonly AnyRunEvent[], options: UiStreamOptions = {}): UiChunk[] {
  const projection = uiMessageProjection(options)
  const chunks = events.flatMap((event) => [...projection.next(event)])
  return [...chunks, ...projection.end()]
}

/** The message of an official client after some chunks, through JSON, as it is stored; fails where the client does. */
export async function messageAfter(
  dialect: Dialect,
  chunks: readonly UiChunk[],
  before?: UIMessage,
): Promise<UIMessage> {
  const errors: unknown[] = []
  const stream = new ReadableStream<UiChunk>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(structuredClone(chunk))
      controller.close()
    },
  })
  let message: UIMessage | undefined = before
  const { read } = CLIENTS[dialect]
  for await (const next of read({
    ...(before && { message: structuredClone(before) }),
    stream,
    onError: (error) => errors.push(error),
  }))
    message = next
  const told = chunks.flatMap((chunk) => (chunk.type === 'error' ? [chunk.errorText] : []))
  const unexpected = errors.filter((error) => !told.includes((error as Error).message))
  if (unexpected.length > 0) throw new Error(`The client of AI SDK ${dialect} failed: ${String(unexpected[0])}`)
  if (message === undefined) throw new Error('There is no message.')
  return JSON.parse(JSON.stringify(message)) as UIMessage
}

/** Throws unless every chunk is one that the dialect knows. */
export async function checkChunks(dialect: Dialect, chunks: readonly UiChunk[]): Promise<void> {
  const { schema } = CLIENTS[dialect] as unknown as { schema: unknown }
  const { validate } = (typeof schema === 'function' ? (schema as () => unknown)() : schema) as {
    readonly validate: (value: unknown) => Validated | Promise<Validated>
  }
  for (const chunk of chunks) {
    const result = await validate(JSON.parse(JSON.stringify(chunk)))
    if (!result.success)
      throw new Error(`Dialect ${dialect} does not know ${JSON.stringify(chunk)}: ${String(result.error)}`)
  }
}

/** Throws unless the messages are valid for that version. */
export async function checkMessages(dialect: Dialect, messages: readonly unknown[]): Promise<void> {
  await CLIENTS[dialect].validate({ messages })
}

/**
 * A message whose data parts of child runs are at the end of their steps: in which order the child runs of several calls
 * begin is not in the log of their parent.
 */
export function withChildrenLast(message: UIMessage): UIMessage {
  const steps: UIMessage['parts'][] = [[]]
  for (const part of message.parts) {
    if (part.type === 'step-start') steps.push([])
    steps.at(-1)?.push(part)
  }
  const isChild = ({ type }: { readonly type: string }): boolean => type === 'data-run'
  const parts = steps.flatMap((step) => [
    ...step.filter((part) => !isChild(part)),
    ...step.filter(isChild).sort((one, other) => (JSON.stringify(one) < JSON.stringify(other) ? -1 : 1)),
  ])
  return { ...message, parts }
}
