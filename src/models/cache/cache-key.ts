import type { AssistantPart, ContentPart, TranscriptEntry, UserEntry } from '#contracts/entry.js'
import type { Model, RequestConstants, TurnOptions } from '#core/model-session.js'
import { SessionModel } from '#providers/wire/wire-session.js'
import { sha256 } from '#util/platform/sha256.js'
import { ComposedModel } from '../composed-model.js'
import { PassingModel } from '../passing-model.js'
import { normalise } from './normalise.js'

/** Of the form of a key: another form finds none of the earlier replies. */
const VERSION = 1

/** A request, as far as its reply depends on it. */
export interface Asked {
  readonly view: readonly TranscriptEntry[]
  readonly constants: RequestConstants
  readonly toolChoice: TurnOptions['toolChoice']
  readonly purpose: string
  readonly scope: string
}

/** The keys of one session. Each entry is looked at once. */
export class Keys {
  readonly #model: Model
  readonly #normalises: boolean
  #constants: { readonly given: RequestConstants; readonly digest: string } | null = null
  readonly #entries: { readonly entry: TranscriptEntry; readonly text: string }[] = []
  /** The calls of the conversation, in order: their ids are chance. */
  readonly #calls = new Map<string, number>()

  constructor(model: Model, normalises: boolean) {
    this.#model = model
    this.#normalises = normalises
  }

  async keyOf(asked: Asked): Promise<string> {
    const { view } = asked
    const last = this.#normalises ? view.findLastIndex(isQuestion) : -1
    const texts = this.#textsOf(view)
    const question = view[last]
    if (question?.role === 'user') texts[last] = this.#text(normalised(question))
    return sha256(JSON.stringify([await this.#beside(asked), texts]))
  }

  /** Of everything but the question. */
  async groupOf(asked: Asked): Promise<string> {
    return sha256(JSON.stringify([await this.#beside(asked), 'group']))
  }

  async #beside({ constants, toolChoice, purpose, scope }: Asked): Promise<readonly unknown[]> {
    if (this.#constants?.given !== constants)
      this.#constants = { given: constants, digest: sha256(JSON.stringify(await shapeOf(this.#model, constants))) }
    return [VERSION, scope, purpose, this.#constants.digest, toolChoice ?? null]
  }

  #textsOf(view: readonly TranscriptEntry[]): string[] {
    const known = this.#entries.findIndex(({ entry }, index) => entry !== view[index])
    if (known !== -1) this.#entries.length = known
    if (known === 0) this.#calls.clear()
    for (let index = this.#entries.length; index < view.length; index++) {
      const entry = view[index]
      if (entry !== undefined) this.#entries.push({ entry, text: this.#text(entry) })
    }
    return this.#entries.slice(0, view.length).map(({ text }) => text)
  }

  #text(entry: TranscriptEntry): string {
    if (entry.role === 'tool')
      return sha256(JSON.stringify(['tool', this.#callNumber(entry.callId), entry.name, entry.content, entry.isError]))
    if (entry.role === 'user')
      return sha256(JSON.stringify(['user', entry.content, entry.notice ?? false, entry.native?.data ?? null]))
    return sha256(JSON.stringify(['assistant', entry.parts.map((part) => this.#part(part))]))
  }

  #part({ native, ...part }: AssistantPart): unknown {
    if (part.type === 'opaque') return [part.type, native?.data ?? null]
    return 'callId' in part ? { ...part, callId: this.#callNumber(part.callId) } : part
  }

  #callNumber(callId: string): number {
    const number = this.#calls.get(callId) ?? this.#calls.size
    this.#calls.set(callId, number)
    return number
  }
}

/** The text of a first question without history; null for any other conversation. */
export function questionIn(view: readonly TranscriptEntry[]): string | null {
  const [first, second] = view
  if (first === undefined || second !== undefined || !isQuestion(first)) return null
  const texts = first.content.map((part) => (part.type === 'text' ? part.text : null))
  return texts.includes(null) ? null : texts.join('\n')
}

function isQuestion(entry: TranscriptEntry): entry is UserEntry {
  return entry.role === 'user' && entry.notice !== true && entry.native === undefined
}

function normalised(entry: UserEntry): UserEntry {
  const content = entry.content.map((part): ContentPart => {
    return part.type === 'text' ? { type: 'text', text: normalise(part.text) } : part
  })
  return { ...entry, content }
}

/** What shapes a reply beside the conversation: the constants, and the options that the model itself was made with. */
async function shapeOf(model: Model, constants: RequestConstants): Promise<unknown> {
  const { instructions, tools, structuredOutput, settings } = constants
  return [{ instructions, tools, structuredOutput, settings }, await ownShape(model, constants)]
}

async function ownShape(model: Model, constants: RequestConstants): Promise<unknown> {
  const name = `${model.provider}:${model.id}`
  if (model instanceof SessionModel) return [name, await model.headOf(constants)]
  if (model instanceof PassingModel) return ownShape(model.inner, constants)
  if (model instanceof ComposedModel)
    return [name, await Promise.all(model.asks(constants).map((each) => ownShape(each.model, each.constants)))]
  return [name]
}
