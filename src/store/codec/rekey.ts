import { invalidOptions } from '#contracts/parse.js'
import type { LogStore } from '#core/log/log.js'
import { isObject } from '#util/json.js'
import type { LogCodec, Rewritable, Rewriting } from './log-codec.js'

/**
 * Writes all logs that no process owns anew with `cipher`, which the store has from then on: encrypts what is stored, or changes the
 * key. Call it again for the logs in `left`. Other processes need a cipher that reads both.
 */
export async function rekey(log: LogStore, cipher: LogCodec): Promise<Rewriting> {
  if (!isRewritable(log))
    throw invalidOptions('Expected the log of `rekey` to be one of the package: memory, files, SQLite or PostgreSQL.')
  if (!isObject(cipher) || typeof cipher.load !== 'function')
    throw invalidOptions('Expected the cipher of `rekey` to be `encryption({ … })` or `compression()`.')
  return log.rewrite(cipher)
}

function isRewritable(log: object): log is Rewritable {
  return typeof (log as Partial<Rewritable>).rewrite === 'function'
}
