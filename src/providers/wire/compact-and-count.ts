import { mendHistory } from '#contracts/mend.js'
import type { Compaction, Model, ModelCapabilities, ModelSettings } from '#core/model-session.js'
import { isObject } from '#util/json.js'
import type { JsonObject } from '#util/json.js'
import { errorWithin, providerError } from '../http/provider-errors.js'
import { withRetries } from '../http/retry.js'
import type { Transport, WireFormat, TransportRequest } from '../http/wire-format.js'
import { OwnParts } from './call-ids.js'

/** The options that all sessions of a model share. */
export interface WireSessionOptions {
  readonly provider: string
  /** As in `NativePart.provider`, if it is not `provider`. */
  readonly nativeTo?: () => string
  readonly model: string
  readonly format: WireFormat
  readonly capabilities: ModelCapabilities
  readonly transport: Transport
  /** A connection of each session, with which the server keeps the conversation if it `keeps` one. Default: all share the transport. */
  readonly line?: { readonly keeps: boolean; readonly open: () => Promise<Transport> } | undefined
  /** Throws if no request can be made, such as without a key. */
  readonly check?: () => unknown
  readonly headers: Readonly<Record<string, string>>
  readonly maxRetries: number
  /** The effort of the model, if the settings of a run do not set one. */
  readonly defaults?: Pick<ModelSettings, 'reasoningEffort'>
  /** The server stores the conversation: only new entries and the id of the last response are sent. */
  readonly chain: boolean
}

/** What is the server's own, by name. */
function ownParts({ provider, nativeTo }: WireSessionOptions): OwnParts {
  return new OwnParts(provider, nativeTo?.())
}

/** The conversation, compacted by the API. */
export async function compactedBy(
  options: WireSessionOptions,
  ...[view, constants, { signal, maxOutputTokens: most, attempt }]: Parameters<NonNullable<Model['compact']>>
): Promise<Compaction> {
  const { format, transport, headers, provider, model, maxRetries } = options
  const { compactor } = format
  if (compactor === undefined) throw providerError(`\`${provider}\` cannot compact a conversation.`, {})
  const entries = ownParts(options).read(mendHistory(view).entries)
  const messages = [...format.opening(constants), ...format.encode(entries, constants)]
  const conversation = { ...format.head(constants), [format.conversationField]: messages }
  const begin = attempt && (() => attempt({ provider, model }))
  const answer = await withRetries(
    async (tried) => {
      const maxOutputTokens = tried.maxOutputTokens ?? most
      const options = { streamed: false, toolChoice: undefined, maxOutputTokens, previousResponseId: null }
      const tail = format.tail(options, constants)
      const body = compactor.request({ ...conversation, ...tail })
      const request: TransportRequest = {
        path: compactor.path,
        headers: { ...headers, ...compactor.headers },
        body: transport.bodies === 'bytes' ? [new TextEncoder().encode(JSON.stringify(body))] : body,
        signal,
      }
      return compactor.decode(await transport.send(request))
    },
    { maxRetries, signal, begin },
  )
  const { data, text, usage } = answer
  return { native: { provider: options.nativeTo?.() ?? provider, data }, text, usage }
}

/** The number of the API's own counter. */
export async function countedBy(
  options: WireSessionOptions,
  ...[view, constants, { signal }]: Parameters<NonNullable<Model['countTokens']>>
): Promise<number> {
  const { format, transport, headers } = options
  const {
    path = '',
    fields = [],
    request = (picked: JsonObject) => picked,
    answer: member = 'input_tokens',
  } = format.counter ?? {}
  const own = ownParts(options)
  const entries = own.read(mendHistory(view).entries)
  const messages = [...format.opening(constants), ...format.encode(entries, constants)]
  const whole: JsonObject = { ...format.head(constants), [format.conversationField]: messages }
  const picked = Object.fromEntries(fields.flatMap((name) => (name in whole ? [[name, whole[name]]] : [])))
  const text = JSON.stringify(request(picked))
  const [first] = view
  const isCompacted = first?.role === 'user' && own.includes(first)
  const all = { ...headers, ...(isCompacted && format.compactor?.headers) }
  const answer = await transport.send({ path, headers: all, body: [new TextEncoder().encode(text)], signal })
  const tokens = isObject(answer) ? answer[member] : undefined
  if (typeof tokens === 'number') return tokens
  throw errorWithin(answer) ?? providerError(`The counter of the provider sent no \`${member}\`.`, {})
}
