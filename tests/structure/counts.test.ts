import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const rig = fileURLToPath(new URL('../../.build/rigs/counts.js', import.meta.url))

/** Nothing is collected, and nothing is compiled meanwhile. */
const FLAGS = ['--min-semi-space-size=64', '--max-semi-space-size=64', '--no-opt']

/**
 * The same on every machine and version of Node, but for bytes, of which Node 20 needs the most. A change that needs more says why; one that
 * needs less lowers the bound.
 */
const MOST = {
  /** From one request to the next, over HTTP: a reply with one call, its result, the log in memory. */
  turn: { encoded: 4, decoded: 3, promises: 137, resumed: 84, calls: 598, bytes: 123_500, sockets: 1 },
  /** Streamed text that is read delta by delta; parts of a chunk and of a batch are shared among their deltas. */
  delta: { encoded: 0, decoded: 1, promises: 2.62, resumed: 1.42, calls: 47.84, bytes: 2250 },
}

const names = {
  encoded: 'texts of JSON encoded',
  decoded: 'texts of JSON decoded',
  promises: 'promises made',
  resumed: 'functions that go on after a promise',
  calls: 'calls of functions of the package',
  bytes: 'bytes allocated, with those of the provider',
  sockets: 'sockets opened by 20 turns',
}

const counted = JSON.parse(execFileSync(process.execPath, [...FLAGS, rig], { encoding: 'utf8' })) as Record<
  keyof typeof MOST,
  Readonly<Record<string, number>>
>

const bounds = Object.entries(MOST).flatMap(([of, most]) =>
  Object.entries(most).map(([kind, bound]) => ({
    of: of as keyof typeof MOST,
    kind: kind as keyof typeof names,
    bound,
  })),
)

test.each(bounds.map(({ of, kind, bound }) => ({ of, kind, bound, name: names[kind] })))(
  'a $of needs at most $bound $name',
  ({ of, kind, bound }) => {
    const found = counted[of][kind]
    expect(found).toBeGreaterThanOrEqual(0)
    expect(found).toBeLessThanOrEqual(bound)
  },
)
