import { setTimeout as wait } from 'node:timers/promises'
import { defineTool } from 'thinharness'
import { z } from 'zod'

export const reindex = defineTool({
  name: 'reindex',
  description: 'Rebuild the search index. Takes a few seconds.',
  parameters: z.object({ shards: z.number().int().min(1).max(64).default(4) }),
  annotations: { idempotent: true },
  sequential: true,
  timeoutMs: 30_000,
  maxOutputChars: 4_000,
  maxRetries: 2,
  async handler({ shards }, context) {
    for (let shard = 1; shard <= shards; shard++) {
      await wait(5, undefined, { signal: context.signal })
      context.progress({ shard, of: shards })
    }
    return { shards, job: context.idempotencyKey }
  },
})
