import { Harness, defineExtension } from 'thinharness'

/** Replaces the tool results of all but the last ten turns, once they fill half of the window. */
const forgetful = defineExtension({
  name: 'forgetful',
  view: ({ view, lastInputTokens, window }) => {
    if (lastInputTokens === null || window === null || lastInputTokens < window / 2) return null
    const replies = view.filter(({ role }) => role === 'assistant')
    const recent = replies.at(-10)
    const earlier = recent === undefined ? [] : view.slice(0, view.indexOf(recent))
    const shown = '[This result was removed to save space.]'
    const results = earlier.filter((entry) => entry.role === 'tool' && entry.content !== shown)
    return { changes: results.map(({ id }) => ({ from: id, to: id, shown })) }
  },
})

await using harness = new Harness({ model: 'anthropic:claude-sonnet-5', root: './notes', use: [forgetful] })
console.log((await harness.run('Summarize all notes.')).text)
