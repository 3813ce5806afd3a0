import { defineExtension } from 'thinharness'

/** The first request has to call `look_up`; after its result the model is free. */
export const lookUpFirst = defineExtension({
  name: 'look-up-first',
  wrapModelCall(call, next) {
    if (call.transcript.some(({ role }) => role === 'tool')) return next(call)
    const settings = { ...call.constants.settings, toolChoice: { tool: 'look_up' } }
    return next({ ...call, constants: { ...call.constants, settings } })
  },
})
