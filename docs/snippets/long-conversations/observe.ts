import { Harness } from 'thinharness'
import { observe } from 'thinharness/context'

export const assistant = new Harness({
  model: 'anthropic:claude-sonnet-5',
  use: [observe({ model: 'anthropic:claude-haiku-4-5', idleMs: 3_600_000 })],
})
