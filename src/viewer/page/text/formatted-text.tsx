import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'

const MOST_CHARACTERS = 4000
const MOST_LINES = 60
/** What one more click adds to a text that is longer than this. */
const STEP = 200_000

/** Marks that change the direction of the text after them, by which words can look like other words. */
const DIRECTION_MARKS = /[\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c]/g
/** What has no picture of its own and can break a layout. */
const CONTROLS = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/g

/** A stranger's text as it may be shown: marks of direction and control characters are named instead of obeyed. */
export function plainText(text: string): string {
  const name = (mark: string) => `⟨U+${(mark.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}⟩`
  return text.replace(DIRECTION_MARKS, name).replace(CONTROLS, name)
}

/** The beginning of a text: at most so many characters and lines. */
export function beginning(text: string, characters = MOST_CHARACTERS, lines = MOST_LINES): string {
  let end = -1
  for (let line = 0; line < lines; line += 1) {
    const next = text.indexOf('\n', end + 1)
    if (next === -1 || next > characters) return text.slice(0, characters)
    end = next
  }
  return text.slice(0, end)
}

/** A text, cut if it is long, with a button that shows more. `as` gives the element around what is shown. */
export function Words({ text, as }: { readonly text: string; readonly as?: (text: string) => ComponentChildren }) {
  const [more, setMore] = useState(0)
  const cut = more === 0 ? beginning(text) : text.slice(0, more * STEP)
  const show = as ?? ((part: string) => <pre class="words">{plainText(part)}</pre>)
  return (
    <>
      {show(cut)}
      {cut.length < text.length && (
        <button type="button" class="more" onClick={() => setMore(more + 1)}>
          {text.length <= (more + 1) * STEP ? 'Show all' : 'Show more'}
          <span class="quiet"> {`${(text.length - cut.length).toLocaleString('en')} more characters`}</span>
        </button>
      )}
    </>
  )
}

/** Base64 from a log: an image as an image, everything else as what it is and how large. */
export function Media({ mediaType, data, name }: { mediaType: string; data: string; name?: string | undefined }) {
  const bytes = Math.floor((data.replace(/=+$/, '').length * 3) / 4)
  const label = `${name === undefined ? mediaType : `${plainText(name)}, ${mediaType}`}, ${bytesInWords(bytes)}`
  // SVG stays out: an image element runs no script, but saved from it the file would.
  return /^image\/(png|jpeg|gif|webp|avif)$/.test(mediaType) ? (
    <figure class="media">
      <img src={`data:${mediaType};base64,${data}`} alt={label} />
      <figcaption>{label}</figcaption>
    </figure>
  ) : (
    <p class="media file">{label}</p>
  )
}

/** Bytes in words: `1.4 MB`. */
function bytesInWords(bytes: number): string {
  if (bytes < 1000) return `${bytes} bytes`
  const unit = bytes < 1e6 ? 'KB' : 'MB'
  return `${(bytes / (bytes < 1e6 ? 1e3 : 1e6)).toPrecision(3)} ${unit}`
}

/** Milliseconds in words: `340 ms`, `1.24 s`, `3 min 20 s`. */
export function timeOf(ms: number | undefined): string {
  if (ms === undefined || !Number.isFinite(ms)) return ''
  if (ms < 1) return ms <= 0 ? '0 ms' : '<1 ms'
  if (ms < 1000) return `${Math.round(ms)} ms`
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`
  const minutes = Math.floor(ms / 60_000)
  if (minutes < 60) return `${minutes} min ${Math.round((ms % 60_000) / 1000)} s`
  return minutes < 2880 ? `${Math.floor(minutes / 60)} h ${minutes % 60} min` : `${Math.floor(minutes / 1440)} days`
}

/** A count, short: `940`, `12.4k`, `1.20M`. */
export function countOf(count: number): string {
  if (count < 10_000) return count.toLocaleString('en')
  return count < 1e6 ? `${(count / 1e3).toFixed(count < 1e5 ? 1 : 0)}k` : `${(count / 1e6).toFixed(2)}M`
}

export function moneyOf(usd: number): string {
  return `$${usd < 0.01 && usd > 0 ? usd.toPrecision(2) : usd.toFixed(usd < 1 ? 3 : 2)}`
}
