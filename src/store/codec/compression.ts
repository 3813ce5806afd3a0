import type { LogCodec } from './log-codec.js'

/** Compresses what a store holds: its `cipher` option. Reads records that are not compressed, too. */
export function compression(): LogCodec {
  return { load: async () => (await import('./deflate.js')).DEFLATE }
}
