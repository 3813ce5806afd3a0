import type { AnsweredTurn } from '#core/money-port.js'
import { costOfReply } from './hosted-cost.js'
import { givenPrice, priceOf } from './find-price.js'
import type { Price } from './token-cost.js'
import type { PricedModel, Prices } from './find-price.js'

/**
 * The cost of a reply, in micro-dollars, at the price of the model that answered; null if it is unknown. `price` is that of the run's
 * model, which counts for a reply that names no other model, and for the name under which a provider keeps a version of it.
 */
export async function costOfAnswer(
  turn: AnsweredTurn,
  { model, price, prices }: { readonly model: PricedModel; readonly price: Price | null; readonly prices: Prices },
): Promise<number | null> {
  const { usage } = turn.entry
  const { provider = model.provider, model: id = model.id } = turn.entry
  const { responseModel, batch } = turn
  const isOther = provider !== model.provider || id !== model.id
  let asked = price
  if (isOther) asked = await priceOf({ provider, id }, prices)
  if (responseModel === undefined || responseModel === null || responseModel === id || isVersionOf(responseModel, id))
    return asked === null ? null : costOfReply({ price: asked, provider }, usage, batch)
  const answered = await ownPrice({ provider, id: responseModel }, { provider, id }, prices)
  const known = answered ?? asked
  return known === null ? null : costOfReply({ price: known, provider }, usage, batch)
}

/** The price of the name in a reply. A price that the host has given for the model it asked for is not overruled by a list. */
async function ownPrice(answered: PricedModel, asked: PricedModel, { models = {} }: Prices): Promise<Price | null> {
  const isGiven = givenPrice(asked, models) !== undefined
  return isGiven ? (givenPrice(answered, models) ?? null) : priceOf(answered, { models })
}

function shortName(name: string): string {
  return name.slice(name.lastIndexOf('/') + 1).toLowerCase()
}

/** True for a name of the same model, with a date or a version behind it, or the path of a gateway before one of them. */
function isVersionOf(name: string, id: string): boolean {
  const short = shortName(name)
  const whole = shortName(id)
  return (
    short.startsWith(whole) && /^(?:[-@:_.]?(?:\d{3,}|latest|preview)(?![a-z]).*)?$/.test(short.slice(whole.length))
  )
}
