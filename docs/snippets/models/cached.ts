import { Harness } from 'thinharness'
import { cached, sqliteCache } from 'thinharness/models'

const model = cached('anthropic:claude-sonnet-5', {
  store: sqliteCache('cache.db'),
  ttlMs: 24 * 3_600_000,
  normalise: true,
})
export const harness = new Harness({ model })
