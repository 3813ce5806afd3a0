import { entryContent } from './recall.js'
import type { ViewStep } from './spans.js'

/** Longest input for a model that writes about a conversation, in characters: about 60,000 tokens. */
const LONGEST = 240_000
const LONGEST_TEXT = 4000
const SHORTEST_TEXT = 200

/**
 * Steps as data for another model: one JSON object per line, in which nothing can pass for an instruction of the harness.
 * Messages of the harness are left out, texts are cut, and if there are too many, so are those in the middle.
 */
export function quoteSteps(steps: readonly ViewStep[]): string {
  for (let most = LONGEST_TEXT; ; most /= 2) {
    const lines = stepLines(steps, most)
    const length = lines.reduce((sum, line) => sum + line.length, 0)
    if (length <= LONGEST) return lines.join('\n')
    if (most / 2 >= SHORTEST_TEXT) continue
    const kept = Math.floor((lines.length * LONGEST) / length / 2)
    return [...lines.slice(0, kept), '{"omitted":true}', ...lines.slice(-kept)].join('\n')
  }
}

function stepLines(steps: readonly ViewStep[], most: number): readonly string[] {
  return steps.flatMap(({ spans }) =>
    spans.flatMap(({ entry, first, last }) => {
      const isRange = first !== last
      if (entry.role === 'user' && entry.notice === true && !isRange) return []
      const { text } = entryContent(entry)
      const about = isRange ? 'earlier summary' : entry.role === 'tool' ? `result of ${entry.name}` : entry.role
      // An earlier summary is all that is left of its entries.
      return [JSON.stringify({ at: entry.at, from: about, text: cutMiddle(text, isRange ? LONGEST_TEXT * 4 : most) })]
    }),
  )
}

function cutMiddle(text: string, most: number): string {
  if (text.length <= most) return text
  const half = Math.floor(most / 2)
  return `${text.slice(0, half)} […] ${text.slice(-half)}`.toWellFormed()
}
