import { Harness } from 'thinharness'
import type { LogStore } from 'thinharness'
import { z } from 'zod'

const LABEL = z.object({
  topic: z.enum(['broken', 'late', 'wrong', 'taste', 'praise']),
  mood: z.number().int().min(1).max(5).describe('1 is furious, 5 is delighted.'),
  urgent: z.boolean().describe('True if the customer waits for an answer.'),
})
export type Label = z.infer<typeof LABEL>

/** Labels one review. An answer that does not fit is sent back to the model, which corrects it. */
export function labeller(log: LogStore): Harness<Label> {
  return new Harness({
    log,
    builtinTools: [],
    outputType: LABEL,
    instructions: 'You label reviews of a tea shop.',
    // A short answer: less is reserved for each request, so that more of them fit into what is left of the money.
    settings: { maxOutputTokens: 300 },
    limits: { modelRequests: 4 },
    // Of the scripted replies. The prices of known models are known.
    prices: { models: { scripted: { inputPerMillion: 1, outputPerMillion: 5 } } },
  })
}
