import { defineExtension } from 'thinharness'

/** `refund` is offered only after `look_up` has been called, with a line more in the system prompt. */
export const refundAfterLookUp = defineExtension({
  name: 'refund-after-look-up',
  wrapModelCall(call, next) {
    const { constants, transcript } = call
    const hasLookedUp = transcript.some((entry) => entry.role === 'tool' && entry.name === 'look_up')
    const tools = hasLookedUp ? constants.tools : constants.tools.filter(({ name }) => name !== 'refund')
    const instructions = hasLookedUp ? `${constants.instructions}\nYou may now refund.` : constants.instructions
    return next({ ...call, constants: { ...constants, tools, instructions } })
  },
})
