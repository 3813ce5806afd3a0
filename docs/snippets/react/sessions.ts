import { Harness } from 'thinharness'
import { Sessions } from 'thinharness/session'

export const sessions = new Sessions({ harness: new Harness({ model: 'openai:gpt-5.5' }) })
