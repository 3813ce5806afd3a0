import { Harness } from 'thinharness'
import { anthropic, openai } from 'thinharness/providers'

const overOneConnection = openai('gpt-5.5', { transport: 'websocket' })
const inThreads = anthropic('claude-sonnet-5', { threads: true })

export const harnesses = [overOneConnection, inThreads].map((model) => new Harness({ model }))
