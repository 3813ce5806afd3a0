import { defineConfig } from 'vitest/config'
import shared from '../../vitest.config.js'

/** One journey after the other: they share a limit of cost. */
export default defineConfig({
  resolve: shared.resolve ?? {},
  test: { include: ['e2e/live/*.live.ts'], reporters: ['verbose'], maxConcurrency: 1 },
})
