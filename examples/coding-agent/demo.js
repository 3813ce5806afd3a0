// Answers in place of a model, so that the example works without a key. Delete this file when you use a real one.
import { resultForModel } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'

const PLAN = `1. In \`slug.mjs\`, replace everything that is no letter or digit with one hyphen.
2. Remove hyphens at both ends.
3. Run \`node --test\`: both tests should pass.`

const CHANGED = `1. In \`slug.mjs\`, replace signs with one hyphen, and none at the ends; nothing else.
2. Run \`node --test\`.`

const EDIT = {
  path: 'slug.mjs',
  old_string: "return title.toLowerCase().replaceAll(' ', '-')",
  new_string: "const words = title.toLowerCase().match(/[\\p{L}\\p{N}]+/gu) ?? []\n  return words.join('-')",
}

export function demo() {
  return new ScriptedModel().always(({ transcript, constants }) => {
    const asked = transcript.findLastIndex((entry) => entry.role === 'user' && entry.notice !== true)
    const results = transcript.slice(asked + 1).filter((entry) => entry.role === 'tool')
    const last = results.at(-1)
    const text = last === undefined ? '' : resultForModel(last, 'flag')
    const done = (name) => results.some((entry) => entry.name === name)
    if (last === undefined) return calls('read', { path: 'slug.test.mjs' }, { path: 'slug.mjs' })
    if (last.name === 'read' && constants.tools.some((tool) => tool.name === 'submit_plan'))
      return calls('submit_plan', { title: 'Slugs', plan: PLAN })
    if (last.name === 'submit_plan' && text.includes('Revise')) return calls('submit_plan', { plan: CHANGED })
    if (last.name === 'submit_plan' && text.includes('Stop here')) return 'All right. Nothing was changed.'
    if (!done('edit')) return calls('edit', { edits: [EDIT] })
    if (last.name === 'edit' && last.isError) return `I have changed nothing: ${text}`
    if (!done('bash')) return calls('bash', { command: 'node --test' })
    return /# pass 2|pass 2/.test(text) ? 'Both tests pass now.' : `The tests fail:\n\n${text}`
  })
}

function calls(name, ...all) {
  return { calls: all.map((args) => ({ name, arguments: args })) }
}
