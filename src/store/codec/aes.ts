import { CLEAR, COMPRESSED, ENCRYPTED, HIDDEN_OWNER, unreadableRecord } from './clear.js'
import type { RecordCodec, RecordPlace } from './log-codec.js'
import { DEFLATE, deflate, inflate } from './deflate.js'
import { createCipheriv, createDecipheriv, createHmac, randomBytes } from 'node:crypto'

const ALGORITHM = 'aes-256-gcm'
const NONCE_BYTES = 12
const TAG_BYTES = 16
/** Greater than every text. */
const END = '\u{10ffff}'

/** `aes1:`, how the plain text is written, the name of the key, and in base64: nonce, ciphertext, tag. */
const FORM = /^aes1:(text|deflate):([\w.-]{1,64}):([A-Za-z0-9+/]*={0,2})$/

/** The options of `encryption`, checked. */
interface AesOptions {
  readonly bytesOf: (keyId: string) => Uint8Array | undefined
  readonly keyId: string
  readonly hideOwners?: boolean
  readonly compress?: boolean
  readonly readsClear?: boolean
}

/** Encrypts each record with the key of its log, which is made from the key of `keyId`. */
export class AesCodec implements RecordCodec {
  readonly foreignOwners: RecordCodec['foreignOwners']
  readonly #options: AesOptions
  readonly #keys = new Map<string, Uint8Array>()
  /** The beginning of what it writes. */
  readonly #prefix: string
  readonly #ownerPrefix: string

  constructor(options: AesOptions) {
    this.#options = options
    this.#prefix = prefixOf(options.compress === true ? 'deflate' : 'text', options.keyId)
    this.#ownerPrefix = `${HIDDEN_OWNER}${options.keyId}:`
    this.foreignOwners = options.hideOwners === true ? allBut(this.#ownerPrefix) : [rangeOf(HIDDEN_OWNER)]
  }

  encode(json: string, place: RecordPlace): string {
    const key = this.#keyOf(this.#options.keyId, place)
    const nonce = randomBytes(NONCE_BYTES)
    const cipher = createCipheriv(ALGORITHM, recordKey(key, place), nonce)
    cipher.setAAD(boundTo(this.#prefix, place))
    const text = this.#options.compress === true ? deflate(json) : json
    const bytes = Buffer.concat([
      nonce,
      typeof text === 'string' ? cipher.update(text, 'utf8') : cipher.update(text),
      cipher.final(),
      cipher.getAuthTag(),
    ])
    return this.#prefix + bytes.toString('base64')
  }

  decode(stored: string, place: RecordPlace): string {
    if (!stored.startsWith(ENCRYPTED)) return this.#decodeClear(stored, place)
    const [, form = '', keyId = '', text = ''] = FORM.exec(stored) ?? []
    const bytes = Buffer.from(text, 'base64')
    const end = bytes.length - TAG_BYTES
    if (end < NONCE_BYTES) throw unreadableRecord(place, 'was cut, or is not in the form of encrypted records')
    const key = this.#keyOf(keyId, place)
    try {
      const cipher = createDecipheriv(ALGORITHM, recordKey(key, place), bytes.subarray(0, NONCE_BYTES))
      cipher.setAAD(boundTo(prefixOf(form, keyId), place)).setAuthTag(bytes.subarray(end))
      const plain = Buffer.concat([cipher.update(bytes.subarray(NONCE_BYTES, end)), cipher.final()])
      return form === 'deflate' ? inflate(plain) : plain.toString()
    } catch (cause) {
      throw unreadableRecord(
        place,
        `cannot be decrypted: it was changed, cut or moved, or \`${keyId}\` is another key now`,
        cause,
      )
    }
  }

  isCurrent(stored: string): boolean {
    return stored.startsWith(this.#prefix)
  }

  ownerText(resourceId: string): string {
    const { hideOwners, keyId } = this.#options
    if (hideOwners !== true) return resourceId
    return this.#ownerPrefix + hmac(hmac(this.#known(keyId) ?? '', 'owners'), resourceId).toString('base64')
  }

  #decodeClear(stored: string, place: RecordPlace): string {
    if (this.#options.readsClear !== true)
      throw unreadableRecord(
        place,
        'is not encrypted; `encryption({ readsClear: true })` reads it, and `rekey` encrypts it',
      )
    return stored.startsWith(COMPRESSED) ? DEFLATE.decode(stored, place) : CLEAR.decode(stored, place)
  }

  #keyOf(keyId: string, place: RecordPlace): Uint8Array {
    const key = this.#known(keyId)
    if (key !== undefined) return key
    throw unreadableRecord(place, `is encrypted with key \`${keyId}\`, which \`key\` of \`encryption\` does not give`)
  }

  #known(keyId: string): Uint8Array | undefined {
    const key = this.#keys.get(keyId) ?? this.#options.bytesOf(keyId)
    if (key !== undefined) this.#keys.set(keyId, key)
    return key
  }
}

function prefixOf(form: string, keyId: string): string {
  return `${ENCRYPTED}${form}:${keyId}:`
}

/** A key for each log: so many records as one key may encrypt with random nonces are never written with it. */
function recordKey(key: Uint8Array, { ref }: RecordPlace): Buffer {
  return hmac(key, `log ${ref.kind} ${ref.id}`)
}

/** The additional data: a record that is moved to another place cannot be decrypted. */
function boundTo(prefix: string, { ref, part, key }: RecordPlace): Buffer {
  return Buffer.from(JSON.stringify([prefix, ref.kind, ref.id, part, key]))
}

function hmac(key: Uint8Array | string, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest()
}

function rangeOf(prefix: string): readonly [string, string] {
  return [prefix, prefix.slice(0, -1) + String.fromCharCode(prefix.charCodeAt(prefix.length - 1) + 1)]
}

function allBut(prefix: string): RecordCodec['foreignOwners'] {
  const [from, below] = rangeOf(prefix)
  return [
    ['', from],
    [below, END],
  ]
}
