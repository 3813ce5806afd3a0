import { countTokens } from 'thinharness/context'

const { tokens, by } = await countTokens('anthropic:claude-sonnet-5', 'How long is this?')
console.log(`${tokens} tokens, by ${by}`)
