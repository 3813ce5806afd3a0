// Originals that a view shows in another form can be read by their handles.
import { callTool, resultForModel, textOf, toolCallsOf } from 'thinharness'
import type { ContentPart, TranscriptEntry } from 'thinharness'
import { recall } from 'thinharness/context'

/** Ids of entries that the view neither shows nor names, or whose text \`recall\` does not return. */
export async function lostIn(
  view: readonly TranscriptEntry[],
  transcript: readonly TranscriptEntry[],
  runId: string,
): Promise<readonly string[]> {
  const named = namedIn(view, runId)
  const shown = new Set(view.map((entry) => entry))
  const lost: string[] = []
  for (const [index, entry] of transcript.entries()) {
    // The last reply was not sent.
    if (shown.has(entry) || index === transcript.length - 1) continue
    const isReached = named.some(({ first, last }) => index >= first && index <= last)
    if (!isReached || !(await readAll(`${runId}.${entry.id}`, transcript)).includes(originalOf(entry)))
      lost.push(entry.id)
  }
  return lost
}

interface Named {
  readonly first: number
  readonly last: number
}

/** The ranges whose handles a view shows. */
function namedIn(view: readonly TranscriptEntry[], runId: string): readonly Named[] {
  const handle = new RegExp(`\\b${runId}\\.e(\\d+)(?:-e(\\d+))?`, 'g')
  return view.flatMap((entry) => {
    const text = entry.role === 'assistant' ? textOf(entry.parts) : textIn(entry.content)
    return [...text.matchAll(handle)].map(([, first, last = first]) => ({
      first: Number(first) - 1,
      last: Number(last) - 1,
    }))
  })
}

function textIn(content: string | readonly ContentPart[]): string {
  if (typeof content === 'string') return content
  return content.map((part) => (part.type === 'text' ? part.text : '')).join('\n')
}

/** The text of an entry as the model has read or written it. */
function originalOf(entry: TranscriptEntry): string {
  if (entry.role === 'user') return textIn(entry.content)
  if (entry.role === 'tool') return textIn(resultForModel(entry, 'prefix'))
  return toolCallsOf(entry.parts)[0]?.arguments ?? textOf(entry.parts)
}

const NOTE = /\n\n\[Page \d+ of (\d+)\.[^\]]*\]$/

/** All pages of a handle. */
export async function readAll(handle: string, transcript: readonly TranscriptEntry[]): Promise<string> {
  let text = ''
  for (let page = 1, pages = 1; page <= pages; page++) {
    const { content } = await callTool(recall, { handle, page }, { transcript })
    pages = Number(NOTE.exec(content)?.[1] ?? 1)
    text += content.replace(NOTE, '')
  }
  return text
}
