// LoCoMo: long conversations of two people, and questions whose evidence is labelled (github.com/snap-research/locomo). It is not part
// of this repository: clone it, and pass `data/locomo10.json`, or the folder of the files in `data/locomo10.zip`.
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'

export interface Conversation {
  readonly name: string
  readonly turns: readonly { readonly id: string; readonly text: string }[]
  readonly questions: readonly Question[]
}

export interface Question {
  readonly text: string
  /** Ids of the turns that answer it. */
  readonly evidence: readonly string[]
  readonly kind: string
}

interface Turn {
  readonly speaker: string
  readonly dia_id: string
  readonly text: string
  readonly blip_caption?: string
}

type Sessions = Readonly<Record<string, unknown>>
type Sample = Sessions & {
  readonly qa: readonly { readonly question: string; readonly evidence: readonly string[]; readonly category: number }[]
  /** The form of the one file has the sessions in here. */
  readonly conversation?: Sessions
}

/** By the numbers of the data set. Questions of kind 5 have no answer, and are left out as usual. */
const KINDS: Readonly<Record<number, string>> = { 1: 'several turns', 2: 'time', 3: 'open domain', 4: 'one turn' }

export function readLocomo(path: string): readonly Conversation[] {
  const files = statSync(path).isDirectory() ? readdirSync(path).map((name) => join(path, name)) : [path]
  const samples = files
    .filter((file) => file.endsWith('.json'))
    .sort()
    .flatMap((file) => JSON.parse(readFileSync(file, 'utf8')) as Sample | readonly Sample[])
  return samples.map((sample, index) => conversationOf(sample, `conversation_${index + 1}`))
}

function conversationOf({ qa, ...sample }: Sample, name: string): Conversation {
  const sessions = sample.conversation ?? sample
  const turns = Object.entries(sessions)
    .filter(([key]) => /^session_\d+$/.test(key))
    .flatMap(([, session]) => session as readonly Turn[])
    .map(({ dia_id: id, speaker, text, blip_caption: caption }) => {
      return { id, text: `${speaker}: ${text}${caption === undefined ? '' : ` [${caption}]`}` }
    })
  const known = new Set(turns.map(({ id }) => id))
  const questions = qa.flatMap(({ question: text, evidence, category }) => {
    const kind = KINDS[category]
    // Some labels are lists in one text, and a few name no turn.
    const ids = evidence.flatMap((label) => label.split(/[;\s]+/)).filter((id) => known.has(id))
    return kind === undefined || ids.length === 0 ? [] : [{ text, evidence: [...new Set(ids)], kind }]
  })
  return { name, turns, questions }
}
