import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Harness } from 'thinharness'
import { policy } from 'thinharness/policy'
import { askUser, submitPlan, tasks } from 'thinharness/session'
import { bash } from 'thinharness/tools'
import { demo } from './demo.js'

/** The folder that the agent works in: yours, by PROJECT=../my-app. */
export const root = process.env.PROJECT ?? 'project'
/** With a key: THINHARNESS_MODEL=anthropic:claude-sonnet-5. Without one, demo.js answers. */
const model = process.env.THINHARNESS_MODEL ?? demo()

/** What it may do without a question. The most specific rule counts; what is denied stays denied. */
const rules = [
  { decision: 'allow', category: 'read' },
  { decision: 'ask', category: 'edit' },
  { decision: 'ask', category: 'execute' },
  { decision: 'allow', command: 'node --test *' },
  { decision: 'allow', command: 'npm test *' },
  { decision: 'allow', command: 'git status *' },
  { decision: 'allow', command: 'git diff *' },
  { decision: 'deny', command: 'git push *', note: 'Only people push.' },
]

// Commands run in a sandbox: they write to the folder only, and have no network. `required` refuses them where there is none.
const sandbox = process.env.SANDBOX ?? 'auto'

const agents = existsSync(join(root, 'AGENTS.md')) ? readFileSync(join(root, 'AGENTS.md'), 'utf8') : ''

/** Reads, asks, and makes a plan. It has no tool that changes anything. */
export const plan = new Harness({
  model,
  root,
  builtinTools: ['read', 'search', 'list', 'glob'],
  tools: [askUser(), submitPlan({ then: 'build' })],
  instructions: `You plan changes to the program in this folder. Read what you need, ask if something important is open, then submit
a plan: which files change, how, and which command shows that it works.\n${agents}`,
})

/** Carries out. Edits are shown as a diff before they are made. */
export const build = new Harness({
  model,
  root,
  sandbox,
  builtinTools: ['read', 'search', 'list', 'glob', 'write', 'edit'],
  tools: [bash()],
  use: [policy(rules, { default: 'ask' }), tasks()],
  instructions: `You change the program in this folder. Make the smallest change that does it, then run the tests.\n${agents}`,
})

export const modes = { plan, build }
