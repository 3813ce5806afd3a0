import type {
  CacheBust,
  ModelCapabilities,
  ModelDelta,
  ModelSession,
  ModelTurn,
  RequestConstants,
  TurnOptions,
} from '../../contracts/model.js'
import type { TranscriptEntry } from '../../contracts/entry.js'
import { mendHistory } from '../../contracts/mend.js'
import { firstDifference } from '../../util/first-difference.js'
import { CallIds } from '../wire/call-ids.js'
import { checkEffort } from '../wire/options.js'
import type { Limits } from '../http/request-guard.js'
import { withRetries } from '../http/retry.js'
import type { Attempt } from '../http/retry.js'
import type { DecodedReply } from '../http/wire.js'
import { askModel } from './ask.js'
import { decodeReply } from './decode.js'
import { encodeEntries } from './encode.js'
import type { EncodeRules } from './encode.js'
import type { CallableModel } from './language-model.js'
import type { CallSettings, PromptMessage } from './wire.js'
import { callSettings, checkEffortOption, toolChoiceField } from './request.js'
import type { CallRules } from './request.js'

export interface AiSdkSessionOptions {
  readonly model: CallableModel
  readonly capabilities: ModelCapabilities
  readonly limits: Limits
  readonly maxRetries: number
  readonly callRules: CallRules
  readonly encodeRules: EncodeRules
}

/** What the calls of a session have been given so far. */
interface Sent {
  readonly constants: RequestConstants
  readonly generation: number
  readonly settings: CallSettings
  /** Entries that are encoded in `prompt`, known by identity. */
  readonly entries: TranscriptEntry[]
  readonly prompt: PromptMessage[]
}

/** One run's session with a language model of the AI SDK. Remembers what it has encoded, nothing else. */
export class AiSdkSession implements ModelSession {
  readonly #options: AiSdkSessionOptions
  readonly #callIds = new CallIds()
  #sent: Sent | null = null

  constructor(options: AiSdkSessionOptions) {
    this.#options = options
  }

  async turn(
    transcript: readonly TranscriptEntry[],
    constants: RequestConstants,
    options: TurnOptions,
  ): Promise<ModelTurn> {
    const { callRules, capabilities, maxRetries } = this.#options
    const { reasoningEffort } = constants.settings
    checkEffort(callRules.modelId, capabilities, reasoningEffort)
    checkEffortOption(reasoningEffort, callRules)
    const sent = this.#encode(transcript, constants, options)
    const entries = transcript.length
    const ask = (attempt: Attempt): Promise<DecodedReply> => this.#ask(sent, entries, { options, attempt })
    return this.#toTurn(await withRetries(ask, { maxRetries, signal: options.signal, onRetry: options.onRetry }))
  }

  /** Encodes new entries; all of them for another view, and if an earlier entry changed, which is reported. All or nothing. */
  #encode(transcript: readonly TranscriptEntry[], constants: RequestConstants, options: TurnOptions): Sent {
    const before = this.#sent
    const isSame =
      before?.constants === constants &&
      before.generation === options.generation &&
      before.entries.every((entry, index) => entry === transcript[index])
    if (!isSame) return this.#encodeAll(transcript, constants, options)
    const added = transcript.slice(before.entries.length)
    before.prompt.push(...encodeEntries(added, this.#options.encodeRules))
    before.entries.push(...added)
    this.#callIds.note(added)
    return before
  }

  #encodeAll(transcript: readonly TranscriptEntry[], constants: RequestConstants, options: TurnOptions): Sent {
    const { callRules, encodeRules } = this.#options
    const before = this.#sent
    const { entries, repairs } = mendHistory(transcript)
    const opening: PromptMessage[] =
      constants.instructions === '' ? [] : [{ role: 'system', content: constants.instructions }]
    const prompt = [...opening, ...encodeEntries(entries, encodeRules)]
    const { generation } = options
    const settings = callSettings(constants, callRules)
    const sent: Sent = { constants, generation, settings, entries: [...transcript], prompt }
    const bust = before?.generation === generation ? bustBy(before, sent) : undefined
    if (bust !== undefined) options.onCacheBust?.(bust)
    for (const repair of repairs) options.onRepair?.(repair)
    this.#sent = sent
    this.#callIds.clear()
    this.#callIds.note(transcript)
    return sent
  }

  async #ask(
    sent: Sent,
    entries: number,
    { options, attempt }: { readonly options: TurnOptions; readonly attempt: Attempt },
  ): Promise<DecodedReply> {
    const { model, limits, callRules, encodeRules } = this.#options
    const { signal, onDelta, toolChoice, maxOutputTokens } = options
    const ids = this.#callIds.forReply()
    const tell = (delta: ModelDelta): void => {
      attempt.toldDeltas = true
      onDelta?.(ids.inDelta(delta))
    }
    // A copy: what a provider does with the list is not ours.
    const question = {
      settings: {
        ...sent.settings,
        ...(toolChoice !== undefined && toolChoiceField(toolChoice)),
        ...(maxOutputTokens !== undefined && {
          maxOutputTokens: Math.min(maxOutputTokens, Number(sent.settings['maxOutputTokens'] ?? Infinity)),
        }),
      },
      prompt: [...sent.prompt],
      signal,
      limits,
    }
    const reply = await askModel(model, question, {
      callIdFor: (index) => `call_${entries + 1}_${index + 1}`,
      onDelta: onDelta === undefined ? undefined : tell,
    })
    return decodeReply(reply, { provider: encodeRules.provider, traits: callRules.traits })
  }

  #toTurn(reply: DecodedReply): ModelTurn {
    const { callRules, encodeRules } = this.#options
    const { finishReason, nativeFinishReason, usage, responseId, responseModel, raw } = reply
    const parts = this.#callIds.forReply().inParts(reply.parts)
    return {
      entry: {
        role: 'assistant',
        parts,
        provider: encodeRules.provider,
        model: callRules.modelId,
        finishReason,
        usage,
      },
      nativeFinishReason,
      responseId,
      responseModel,
      raw,
    }
  }
}

/** The first difference that the provider would see in what it was sent before. Another object need not be one. */
function bustBy(before: Sent, after: Sent): CacheBust | undefined {
  const inSettings = firstDifference(plain(before.settings), plain(after.settings))
  if (inSettings !== undefined) return { path: `$${inSettings}`, cause: 'constants_changed' }
  const inPrompt = firstDifference(plain(before.prompt), plain(after.prompt.slice(0, before.prompt.length)))
  if (inPrompt === undefined) return undefined
  const areSameEntries = before.entries.every((entry, index) => entry === after.entries[index])
  const isOfConstants = areSameEntries || before.constants.instructions !== after.constants.instructions
  return { path: `$.prompt${inPrompt}`, cause: isOfConstants ? 'constants_changed' : 'entry_changed' }
}

/** Without addresses as objects, which hide what they differ in. */
function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value))
}
