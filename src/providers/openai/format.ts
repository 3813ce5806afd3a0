import type { ModelCapabilities } from '../../contracts/model.js'
import type { WireFormat } from '../http/wire.js'
import { API_INPUTS } from './content.js'
import { decodeReply } from './decode.js'
import { encodeEntries } from './encode.js'
import { ResponseFold } from './fold.js'
import { isReasoningModel } from './reasoning-models.js'
import { requestHead, requestTail } from './request.js'
import type { RequestOptions } from './request.js'

/** What of a model's options its requests depend on. */
export type FormatOptions = RequestOptions['defaults'] & {
  readonly capabilities?: ModelCapabilities
  readonly chain?: boolean
}

/** The Responses API as pure functions. */
export function responsesFormat(id: string, options: FormatOptions = {}): WireFormat {
  const { capabilities = {}, chain = false } = options
  const { reasoningEfforts: efforts, inputs = API_INPUTS } = capabilities
  const reasons = efforts === undefined ? isReasoningModel(id) : efforts.length > 0
  const request = { id, chain, reasoning: reasons === true, defaults: options }
  // A model that we know nothing of is sent back what it gave.
  const encode = { reasoning: reasons !== false, inputs: API_INPUTS.filter((kind) => inputs.includes(kind)) }
  return {
    path: '/responses',
    conversationField: 'input',
    head: (constants) => requestHead(constants, request),
    opening: () => [],
    encode: (entries) => encodeEntries(entries, encode),
    tail: requestTail,
    fold: (foldOptions) => new ResponseFold(foldOptions),
    decode: decodeReply,
  }
}
