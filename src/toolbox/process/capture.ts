import { characterCount, firstCharacters, isLonger, lastCharacters } from '#util/characters.js'

const BLOCK_BYTES = 65_536
/** The share of the kept bytes that is the beginning. */
const HEAD = 1 / 5

/** The output of a command in bounded memory: complete up to a limit, otherwise its beginning and its end. */
export class Capture {
  readonly #maxBlocks: number
  readonly #headBlocks: number
  /** All are full except the last: many small pieces would need more memory than their content. */
  readonly #blocks: Buffer[] = []
  #used = BLOCK_BYTES
  #leftOut = 0

  /** @param maxBytes Rounded up to blocks of 64 KiB, at least two. */
  constructor(maxBytes: number) {
    this.#maxBlocks = Math.max(2, Math.ceil(maxBytes / BLOCK_BYTES))
    this.#headBlocks = Math.max(1, Math.floor(this.#maxBlocks * HEAD))
  }

  /** Bytes from the middle that were dropped. */
  get leftOut(): number {
    return this.#leftOut
  }

  add(chunk: Buffer): void {
    for (let at = 0; at < chunk.length;) {
      const block = this.#blockWithRoom()
      const copied = chunk.copy(block, this.#used, at)
      this.#used += copied
      at += copied
    }
  }

  /** As text; invalid bytes are replaced. A line marks dropped bytes. */
  text(): string {
    const blocks = this.#blocks.map((block, index) =>
      index === this.#blocks.length - 1 ? block.subarray(0, this.#used) : block,
    )
    if (this.#leftOut === 0) return Buffer.concat(blocks).toString()
    const head = new TextDecoder().decode(Buffer.concat(blocks.slice(0, this.#headBlocks)), { stream: true })
    const tail = withoutHalfCharacter(Buffer.concat(blocks.slice(this.#headBlocks))).toString()
    return `${head}\n[… ${this.#leftOut} bytes left out …]\n${tail}`
  }

  #blockWithRoom(): Buffer {
    const last = this.#blocks.at(-1)
    if (last !== undefined && this.#used < BLOCK_BYTES) return last
    this.#used = 0
    const free = this.#blocks.length < this.#maxBlocks ? undefined : this.#blocks.splice(this.#headBlocks, 1)[0]
    if (free !== undefined) this.#leftOut += BLOCK_BYTES
    const block = free ?? Buffer.allocUnsafeSlow(BLOCK_BYTES)
    this.#blocks.push(block)
    return block
  }
}

/** The bytes from the first complete character on. */
function withoutHalfCharacter(bytes: Buffer): Buffer {
  let at = 0
  while (at < 3 && ((bytes[at] ?? 0) & 0xc0) === 0x80) at++
  return bytes.subarray(at)
}

export interface Excerpt {
  readonly text: string
  readonly truncated: boolean
}

/**
 * Text of at most `limit` characters; of a longer one, the beginning (`headShare` of the limit, default a fifth) and the end,
 * with a marker between them.
 */
export function excerptOf(text: string, limit: number, headShare = 1 / 5): Excerpt {
  if (!isLonger(text, limit)) return { text, truncated: false }
  const head = Math.floor(limit * headShare)
  const chars = characterCount(text)
  const marker = `\n[… ${chars - limit} of ${chars} characters left out …]\n`
  return { text: firstCharacters(text, head) + marker + lastCharacters(text, limit - head), truncated: true }
}
