import { messageOf } from '#contracts/errors.js'
import { invalidOptions, parse } from '#contracts/parse.js'
import { boolean, functionOf, matching, object, optional } from '#util/validate.js'
import type { LogCodec } from './log-codec.js'

export interface EncryptionOptions {
  /** The 32 bytes of a key, at once; undefined if there is none of that name. It is asked once for each. */
  readonly key: (keyId: string) => Uint8Array | undefined
  /** The name of the key that encrypts what is written from now on. It is stored with each record. */
  readonly keyId: string
  /** Stores an HMAC in place of `resourceId`, so that owners are not named either. Default false. */
  readonly hideOwners?: boolean | undefined
  /** Compresses before it encrypts. Lengths then say something about the content. Default false. */
  readonly compress?: boolean | undefined
  /**
   * Also reads records that are not encrypted, as long as a log has some. Default false: they are `invalid_log`, so that nobody can
   * write one.
   */
  readonly readsClear?: boolean | undefined
}

const OPTIONS = object<EncryptionOptions>({
  key: functionOf(),
  keyId: matching(/^[\w.-]{1,64}$/, '1 to 64 letters, digits, `_`, `-` or `.`'),
  hideOwners: optional(boolean),
  compress: optional(boolean),
  readsClear: optional(boolean),
})

const KEY_BYTES = 32

/**
 * Encrypts what a store holds, by AES-256-GCM: its `cipher` option. Ids, numbers, times, statuses, owners, parents and labels stay
 * readable. Throws `invalid_options`, also if `key` does not give the key of `keyId`.
 */
export function encryption(options: EncryptionOptions): LogCodec {
  const { key, keyId, ...flags } = parse(OPTIONS, options, '`encryption`')
  const bytesOf = (id: string): Uint8Array | undefined => checkedKey(key, id)
  if (bytesOf(keyId) === undefined)
    throw invalidOptions(
      `Expected \`key\` of \`encryption\` to give the key of \`keyId\`, \`${keyId}\`; it gives none.`,
    )
  return { load: async () => new (await import('./aes.js')).AesCodec({ bytesOf, keyId, ...flags }) }
}

/** A key; undefined if there is none of that name. Throws `invalid_options` for anything else. */
function checkedKey(key: EncryptionOptions['key'], keyId: string): Uint8Array | undefined {
  const given: unknown = keyGiven(key, keyId)
  if (given === undefined || given === null) return undefined
  if (given instanceof Uint8Array && given.length === KEY_BYTES) return given
  const got =
    given instanceof Uint8Array ? `${given.length} bytes` : given instanceof Promise ? 'a promise' : `a ${typeof given}`
  throw invalidOptions(`Expected \`key\` of \`encryption\` to give ${KEY_BYTES} bytes for \`${keyId}\`, got ${got}.`)
}

function keyGiven(key: EncryptionOptions['key'], keyId: string): unknown {
  try {
    return key(keyId)
  } catch (cause) {
    throw invalidOptions(`\`key\` of \`encryption\` failed for \`${keyId}\`: ${messageOf(cause)}`, cause)
  }
}
