import { expect, test } from 'vitest'
import { diffOf } from '#command/terminal/diff.js'
import { onTerminal, project, shell } from './shell.js'

const edit = (...edits: readonly object[]): string => JSON.stringify({ edits })

test.each<[string, string, string, string | null]>([
  [
    'one line of three',
    'edit',
    edit({ path: 'a.js', old_string: 'let a\nlet b\nlet c', new_string: 'let a\nlet d\nlet c' }),
    '--- a.js\n  let a\n- let b\n+ let d\n  let c',
  ],
  ['a line that is added', 'edit', edit({ path: 'a', old_string: 'x', new_string: 'x\ny' }), '--- a\n  x\n+ y'],
  ['the same line twice', 'edit', edit({ path: 'a', old_string: 'x\nx', new_string: 'x' }), '--- a\n  x\n- x'],
  ['no change', 'edit', edit({ path: 'a', old_string: 'x', new_string: 'x' }), '--- a\n  x'],
  [
    'two files, one of them everywhere',
    'edit',
    edit(
      { path: 'a', old_string: 'x', new_string: 'y', replace_all: true },
      { path: 'b', old_string: 'x', new_string: '' },
    ),
    '--- a, every occurrence\n- x\n+ y\n--- b\n- x\n+ ',
  ],
  ['a whole file', 'write', '{"path":"a","content":"x\\ny\\n"}', '--- a, the whole file\n+ x\n+ y'],
  ['the end of a file', 'write', '{"path":"a","content":"x","append":true}', '--- a, at its end\n+ x'],
  ['another tool', 'pay', '{"edits":[]}', null],
  ['arguments of another form', 'edit', '{"edits":[{"path":"a"}]}', null],
  ['edits that are no list', 'edit', '{"edits":"x"}', null],
  ['arguments that are no JSON', 'write', 'x', null],
])('the diff of an edit: %s', (_name, tool, args, diff) => {
  expect(diffOf(tool, args)).toBe(diff)
})

/** Asks everything that tools of conversations ask, one after the other. */
const CONFIG = `
import { Harness } from 'thinharness'
import { askUser, requestAccess, submitPlan } from 'thinharness/session'
import { ScriptedModel } from 'thinharness/testing'
const options = [{ label: 'Order 7', description: 'of May' }, { label: 'Order 8' }]
const CALLS = [
  ['ask_user', { question: 'Which one?', options }],
  ['ask_user', { question: 'And which else?', options }],
  ['ask_user', { question: 'Which of these?', options, selection: 'several' }],
  ['ask_user', { question: 'Why?' }],
  ['request_access', { tool: 'ask_user', reason: 'To ask more.' }],
  ['submit_plan', { title: 'The plan', plan: '1. Read.' }],
  ['submit_plan', { title: 'The next plan', plan: '1. Write.' }],
]
const model = new ScriptedModel().always(({ transcript, constants }) => {
  const done = transcript.filter(({ role }) => role === 'tool').length
  const [name, args] = CALLS[done] ?? []
  return name === undefined ? 'In ' + constants.instructions + '.' : { calls: [{ name, arguments: args }] }
})
const shared = { model, builtinTools: [] }
const talk = new Harness({ ...shared, instructions: 'talking', tools: [askUser(), requestAccess(), submitPlan({ then: 'work' })] })
export const modes = { talk, work: new Harness({ ...shared, instructions: 'working' }) }
export default talk
`

test.each([
  ['chat', '--model', 'openai:gpt-5.5'],
  ['acp', '--max-cost', '1'],
  ['chat', '--max-requests', '2'],
])('%s %s is refused for a harness that the config file exports', async (...args) => {
  const { code, stderr } = await shell(args, { folder: project({ config: CONFIG }), input: '' })
  expect({ code, stderr }).toMatchObject({
    code: 2,
    stderr: expect.stringContaining(`\`${args[1]}\` has no effect`) as string,
  })
})

test('in a conversation, questions show their options, a plan is changed and then carried out in the mode that it names', async () => {
  const folder = project({ config: CONFIG })
  const { press, ended } = onTerminal(['chat'], { folder })
  // Two spaces: in the prompt, not in the line of the call.
  await press('› ', 'Begin.\r')
  await press('  Which one?', '\u001B[B\r')
  await press('  And which else?', '\u001B[B\u001B[B\r')
  await press('What is it?', 'None\r')
  await press('  Which of these?', ' \u001B[B \r')
  await press('  Why?', 'Because\r')
  await press('Allow the tool ask_user', 'y')
  await press('The plan?', '\u001B[B\r')
  await press('What should be different?', 'Write too.\r')
  await press('mode work', '\r')
  await press('In working.', '/mode\r')
  await press('Mode work, of talk, work.', '/mode rest\r')
  await press('rest', '/exit\r')
  expect((await ended).code).toBe(0)
  const log = (await shell(['inspect', 'last', '--events'], { folder })).stdout
  const answers = [...log.matchAll(/The user answered: ([^"\\]*)/g)].map(([, answer]) => answer)
  expect([...new Set(answers)]).toEqual(['Order 8', 'None', 'Order 7, Order 8', 'Because'])
  expect(log).toContain('Access is granted.')
  expect(log).toContain('The user says: Write too.')
})

test.each([
  ['is no object', 'export const modes = 5'],
  ['has something else than harnesses', 'export const modes = { plan: { model: "x" } }'],
  ['is empty', 'export const modes = {}'],
])('an export `modes` that %s is refused', async (_name, line) => {
  const folder = project({ config: `${CONFIG.replace(/export const modes.*/, '')}\n${line}` })
  const { code, stderr } = await shell(['chat'], { folder })
  expect(code).toBe(2)
  expect(stderr).toContain('Expected the export `modes` of `thinharness.config.js` to be an object of harnesses')
})
