// Explores a tree, and asks for the facts of turn 3 much later.
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Harness, memoryLog } from 'thinharness'
import type { Extension, Model, TranscriptEntry } from 'thinharness'
import { replayUnder } from './contenders.js'
import type { Contender } from './contenders.js'
import { codeIn, isRight, nameIn, NAMES, NOTES, notes, questionAbout } from './facts.js'
import { Meter } from './meter.js'
import { readerOf, writerOf } from './reader.js'
import type { Tree } from './trees.js'

export interface Asking {
  readonly tree: Tree
  readonly window: number
  /** The turns after which questions are asked. */
  readonly turns: readonly number[]
}

/** A policy under which questions are asked, and how its model writes. */
export interface Way {
  readonly title: string
  readonly policy: (writer: Model) => Extension | null
  readonly write?: (text: string) => string
}

export interface Asked {
  readonly title: string
  /** The number of right answers, for each turn with questions. */
  readonly right: readonly number[]
  readonly recalls: number
  readonly meter: Meter
}

/** Every message is a run that continues the conversation. */
export async function ask(
  { tree, window, turns }: Asking,
  { title, policy, write = (text) => text }: Way,
): Promise<Asked & { readonly transcript: readonly TranscriptEntry[] }> {
  await mkdir(tree.root, { recursive: true })
  await writeFile(join(tree.root, NOTES), notes())
  const model = readerOf(tree, window)
  const { meter } = model
  const extension = policy(writerOf(meter, write))
  const limits = { modelRequests: null, toolCalls: null }
  const use = extension === null ? [] : [extension]
  await using harness = new Harness({ model, root: tree.root, limits, log: memoryLog(), use })
  let transcript: readonly TranscriptEntry[] = []
  let before: string | null = null
  const say = async (prompt: string): Promise<string> => {
    const result = await harness.run(prompt, before === null ? {} : { history: { runId: before } })
    ;({ transcript, runId: before } = result)
    return result.text
  }
  const right: number[] = []
  let recalls = 0
  for (const until of turns) {
    model.until = until
    await say('Explore the packages.')
    let count = 0
    for (const name of NAMES) {
      if (isRight(await say(questionAbout(name)), name)) count += 1
      recalls += model.recalls
    }
    right.push(count)
  }
  return { title, right, recalls, meter, transcript }
}

/** The same conversation under a contender, whose reader knows what its requests show. */
export async function askUnder(
  contender: Contender,
  { transcript, turns }: { readonly transcript: readonly TranscriptEntry[]; readonly turns: readonly number[] },
): Promise<Asked> {
  const meter = new Meter()
  const found: boolean[] = []
  await replayUnder(contender, { transcript, meter }, (shown) => {
    const last = shown.at(-1)
    const name = last?.role === 'user' ? nameIn(last.text) : null
    if (name !== null) found.push(shown.some(({ text }) => isRight(codeIn(text, name) ?? '', name)))
  })
  const right = turns.map((_turn, at) =>
    found.slice(at * NAMES.length, (at + 1) * NAMES.length).reduce((sum, is) => sum + Number(is), 0),
  )
  return { title: contender.title, right, recalls: 0, meter }
}
