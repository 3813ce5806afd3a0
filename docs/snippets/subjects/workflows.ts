import type { Harness } from 'thinharness'

export interface Agents {
  readonly search: Harness
  readonly write: Harness
  /** Its `outputType` is `z.boolean()`: whether a report is complete. */
  readonly review: Harness<boolean>
}

/** A workflow of fixed steps. Called again with the same `id` after a crash, it repeats no step that has ended. */
export async function report(id: string, topic: string, { search, write, review }: Agents): Promise<string> {
  const step = (name: string) => ({ runId: `${id}-${name}`, ifExists: 'continue' }) as const

  // Parallel branches, then a step that joins them.
  const [facts, critics] = await Promise.all([
    search.run(`Collect facts about ${topic}.`, step('facts')),
    search.run(`What do critics say about ${topic}?`, step('critics')),
  ])
  let { text } = await write.run(`Write a report.\n${facts.text}\n${critics.text}`, step('draft'))

  // A loop: another agent decides whether the text is good enough.
  for (let round = 1; round <= 3; round++) {
    const { output: isComplete } = await review.run(`Is this complete?\n${text}`, step(`review-${round}`))
    if (isComplete) break
    text = (await write.run(`Complete this report.\n${text}`, step(`revision-${round}`))).text
  }
  return text
}
