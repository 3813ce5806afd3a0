import { defineTool } from 'thinharness'
import { z } from 'zod'

export const research = defineTool({
  name: 'research',
  description: 'Research several questions at once.',
  parameters: z.object({ questions: z.array(z.string()).min(1).max(8) }),
  // After a pause or a crash the handler runs again; each `spawn` then finds its existing run.
  onUnknownOutcome: 'retry',
  handler: async ({ questions }, { spawn }) => {
    const runs = questions.map((prompt, index) => spawn({ prompt, key: `q${index}`, tools: 'inherit' }))
    const results = await Promise.all(runs.map(({ result }) => result))
    return results.map(({ text }) => text).join('\n\n')
  },
})
