import type { JsonValue } from '../../index.js'
import type { AccessRequest, SubmittedPlan, UserQuestion } from '#session/index.js'
import { visible } from './terminal.js'
import type { Terminal } from './terminal.js'
import type * as Clack from '@clack/prompts'

interface Asking {
  readonly terminal: Terminal
  readonly prompts: typeof Clack
}

type Asked = Promise<JsonValue | undefined>

/** A choice of an answer in words of one's own. */
const OTHER = '\u0000'

/**
 * Asks what the tools of conversations ask: a question of `ask_user`, a plan, a request for access. Undefined: the person has stopped.
 * Null for any other payload, which is asked by its schema.
 */
export function askKnown(payload: unknown, asking: Asking): Asked | null {
  const { kind } = (payload ?? {}) as { readonly kind?: unknown }
  if (kind === 'question') return askChoices(payload as UserQuestion, asking)
  if (kind === 'plan') return askPlan(payload as SubmittedPlan, asking)
  return kind === 'access' ? askAccess(payload as AccessRequest, asking) : null
}

async function askChoices({ question, options, selection }: UserQuestion, asking: Asking): Asked {
  const { terminal, prompts } = asking
  const message = visible(question)
  const choices = options.map(({ label, description }) => ({
    ...{ value: label, label: visible(label) },
    ...(description !== undefined && { hint: visible(description) }),
  }))
  if (selection === 'text') return text(message, asking)
  const own = { value: OTHER, label: 'something else' }
  const many = selection === 'several'
  const given = { ...terminal.questions, message, options: [...choices, own] }
  const chosen = many ? await prompts.multiselect(given) : await prompts.select(given)
  if (prompts.isCancel(chosen)) return undefined
  const labels = typeof chosen === 'string' ? [chosen] : chosen
  if (!labels.includes(OTHER)) return chosen
  const words = await text('What is it?', asking)
  if (words === undefined) return undefined
  return many ? [...labels.filter((label) => label !== OTHER), words] : words
}

async function askPlan({ title, plan, then }: SubmittedPlan, asking: Asking): Asked {
  const { terminal, prompts } = asking
  terminal.say(terminal.paint('bold', visible(title)))
  for (const line of visible(plan).split('\n')) terminal.say(`  ${line}`)
  const options = [
    { value: 'approved', label: then === null ? 'carry it out' : `carry it out, in mode ${visible(then)}` },
    { value: 'changed', label: 'change it: say what' },
    { value: 'rejected', label: 'no: stop here' },
  ]
  const action = await prompts.select({ ...terminal.questions, message: 'The plan?', options })
  if (prompts.isCancel(action)) return undefined
  if (action !== 'changed') return { action }
  const feedback = await text('What should be different?', asking)
  return feedback === undefined ? undefined : { action: 'rejected', feedback }
}

async function askAccess({ reason, ...request }: AccessRequest, { terminal, prompts }: Asking): Asked {
  const [subject, name = ''] = Object.entries(request).find(([key]) => key !== 'kind') ?? []
  const message = visible(`Allow the ${subject} ${name} from now on? ${reason}`)
  const approved = await prompts.confirm({ ...terminal.questions, message, initialValue: false })
  return prompts.isCancel(approved) ? undefined : { approved }
}

async function text(message: string, { terminal, prompts }: Asking): Promise<string | undefined> {
  const words = await prompts.text({
    ...{ ...terminal.questions, message },
    validate: (value) => ((value ?? '').trim() === '' ? 'Type an answer.' : undefined),
  })
  return prompts.isCancel(words) ? undefined : words
}
