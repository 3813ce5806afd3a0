/** What `decodeAt` gives for a byte that is no part of UTF-8. Both lie beyond the last code point. */
export const INVALID = 0x11_0000
/** The same, for a byte that could continue a character but does not: it may be told apart. */
export const STRAY = 0x11_0001

/**
 * The character whose first byte, 0x80 or more, is at `at`, and how many bytes it has: `codePoint << 3 | width`. What is
 * not strictly UTF-8 (an overlong form, a surrogate, a cut sequence) is `INVALID` or `STRAY`, one byte wide, as ripgrep has it.
 */
export function decodeAt(bytes: Uint8Array, at: number, end: number): number {
  const lead = bytes[at] ?? 0
  const width = lead < 0xc2 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 1
  if (width === 1 || at + width > end) return bad(lead)
  let codePoint = lead & (0x7f >> width)
  for (let index = at + 1; index < at + width; index++) {
    const byte = bytes[index] ?? 0
    if ((byte & 0xc0) !== 0x80) return bad(lead)
    codePoint = (codePoint << 6) | (byte & 0x3f)
  }
  const isOverlong = codePoint < (SMALLEST[width] ?? 0)
  const isSurrogate = codePoint >= 0xd800 && codePoint <= 0xdfff
  return isOverlong || isSurrogate || codePoint > 0x10_ffff ? bad(lead) : (codePoint << 3) | width
}

const SMALLEST = [0, 0, 0x80, 0x800, 0x1_0000]

function bad(lead: number): number {
  return ((lead < 0xc0 ? STRAY : INVALID) << 3) | 1
}
