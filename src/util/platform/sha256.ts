import { nodeModule } from './node.js'

/** SHA-256 of a text as 64 hex digits, by Node if there is one: the hash of browsers is asynchronous. */
export function sha256(text: string): string {
  return nodeModule('node:crypto')?.createHash('sha256').update(text).digest('hex') ?? portableSha256(text)
}

/** FIPS 180-4, in plain JavaScript. */
export function portableSha256(text: string): string {
  primes ??= firstPrimes(64)
  const state = Int32Array.from(primes.slice(0, 8), (prime) => fraction(Math.sqrt(prime)))
  const rounds = primes.map((prime) => fraction(Math.cbrt(prime)))
  const bytes = padded(new TextEncoder().encode(text))
  const words = new Int32Array(64)
  for (let block = 0; block < bytes.byteLength; block += 64) {
    for (let at = 0; at < 16; at++) words[at] = bytes.getInt32(block + at * 4)
    for (let at = 16; at < 64; at++) words[at] = nextWord(words, at)
    compress(state, words, rounds)
  }
  return [...state].map((word) => (word >>> 0).toString(16).padStart(8, '0')).join('')
}

/** The message, one bit, zeros, and its length in bits: whole blocks of 64 bytes. */
function padded(message: Uint8Array): DataView {
  const bytes = new Uint8Array(Math.ceil((message.length + 9) / 64) * 64)
  bytes.set(message)
  bytes[message.length] = 0x80
  const view = new DataView(bytes.buffer)
  view.setBigUint64(bytes.length - 8, BigInt(message.length) * 8n)
  return view
}

function nextWord(words: Int32Array, at: number): number {
  const [w2, w7, w15, w16] = [2, 7, 15, 16].map((back) => words[at - back] ?? 0) as Four
  const small0 = rotated(w15, 7) ^ rotated(w15, 18) ^ (w15 >>> 3)
  const small1 = rotated(w2, 17) ^ rotated(w2, 19) ^ (w2 >>> 10)
  return w16 + small0 + w7 + small1
}

type Four = [number, number, number, number]
type Eight = [...Four, ...Four]

function compress(state: Int32Array, words: Int32Array, rounds: readonly number[]): void {
  let [a, b, c, d, e, f, g, h] = [...state] as Eight
  for (let at = 0; at < 64; at++) {
    const big1 = rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25)
    const one = (h + big1 + ((e & f) ^ (~e & g)) + (rounds[at] ?? 0) + (words[at] ?? 0)) | 0
    const big0 = rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22)
    const two = (big0 + ((a & b) ^ (a & c) ^ (b & c))) | 0
    ;[a, b, c, d, e, f, g, h] = [(one + two) | 0, a, b, c, (d + one) | 0, e, f, g]
  }
  for (const [at, word] of [a, b, c, d, e, f, g, h].entries()) state[at] = (state[at] ?? 0) + word
}

function rotated(word: number, by: number): number {
  return (word >>> by) | (word << (32 - by))
}

/** Found when they are first needed: not in Node. */
let primes: readonly number[] | undefined

/** The first 32 bits of a fractional part. The constants are those of the square roots of 8 primes, and of the cube roots of 64. */
function fraction(root: number): number {
  return ((root - Math.floor(root)) * 2 ** 32) | 0
}

function firstPrimes(count: number): readonly number[] {
  const found: number[] = []
  for (let next = 2; found.length < count; next++) if (found.every((prime) => next % prime !== 0)) found.push(next)
  return found
}
