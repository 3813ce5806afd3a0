import type { ChatSnapshot } from 'thinharness/ui/client'
import { pretty } from './conversation.js'
import { h } from './dom.js'

export type Waiting = ChatSnapshot['pending'][number]
type Answer = (answer: object) => void

interface Question {
  readonly kind: 'question'
  readonly question: string
  readonly options: readonly { readonly label: string; readonly description?: string }[]
  readonly selection: 'text' | 'one' | 'several'
}

interface Plan {
  readonly kind: 'plan'
  readonly title: string
  readonly plan: string
}

/** The form for something that waits for a person. */
export function waitingView(item: Waiting, answer: Answer): HTMLElement {
  if (item.kind === 'approval') return approval(item, answer)
  if (item.kind === 'unknown_outcome') return verdict(item, answer)
  const payload = item.payload as Question | Plan | null | undefined
  if (payload?.kind === 'plan') return plan(item, payload, answer)
  return question(item, payload?.kind === 'question' ? payload : freeQuestion(item), answer)
}

function freeQuestion({ toolName, payload }: Waiting): Question {
  return {
    kind: 'question',
    question: `${toolName}: ${JSON.stringify(payload ?? null)}`,
    options: [],
    selection: 'text',
  }
}

function approval({ callId, toolName, arguments: text, otherCalls = [] }: Waiting, answer: Answer): HTMLElement {
  const edited = h('textarea', { class: 'code', rows: '4', 'aria-label': `Arguments of ${toolName}` })
  edited.value = pretty(text)
  const problem = h('p', { class: 'bad', role: 'alert' })
  const reason = h('input', {
    type: 'text',
    'aria-label': 'Reason for a rejection',
    placeholder: 'Reason, if you reject',
  })
  const approve = (event: Event): void => {
    event.preventDefault()
    try {
      const editedArguments = JSON.parse(edited.value) as object
      const isSame = pretty(text) === edited.value
      answer({ callId, approved: true, ...(!isSame && { editedArguments }) })
    } catch {
      problem.textContent = 'The arguments are not valid JSON.'
    }
  }
  const reject = (): void => answer({ callId, approved: false, ...(reason.value !== '' && { reason: reason.value }) })
  return h(
    'form',
    { onsubmit: approve },
    h(
      'fieldset',
      {},
      h('legend', {}, `May ${toolName} run?`),
      ...[edited, problem, reason, ...otherCallsView(otherCalls)],
      h('button', { type: 'submit' }, 'Approve'),
      h('button', { type: 'button', onclick: reject }, 'Reject'),
    ),
  )
}

/** The other calls of the same reply: what one of them does can depend on the rest. */
function otherCallsView(calls: NonNullable<Waiting['otherCalls']>): readonly HTMLElement[] {
  if (calls.length === 0) return []
  const line = ({ toolName, arguments: text, when }: (typeof calls)[number]): HTMLElement =>
    h('li', {}, `${toolName} ${text ?? '(waits for an answer of its own)'}, ${when === 'ended' ? 'has run' : when}`)
  return [h('p', {}, 'Other calls of the same reply:'), h('ul', {}, ...calls.map(line))]
}

function question({ callId }: Waiting, { question: text, options, selection }: Question, answer: Answer): HTMLElement {
  const own = h('input', { type: 'text', 'aria-label': 'Your answer', placeholder: 'Your answer' })
  const type = selection === 'several' ? 'checkbox' : 'radio'
  const choices = options.map(({ label, description }) => {
    const input = h('input', { type, name: `choice-${callId}`, value: label })
    return {
      input,
      element: h(
        'label',
        { class: 'choice' },
        input,
        ` ${label}`,
        description === undefined ? null : ` — ${description}`,
      ),
    }
  })
  const send = (event: Event): void => {
    event.preventDefault()
    const chosen = choices.filter(({ input }) => input.checked).map(({ input }) => input.value)
    const all = own.value.trim() === '' ? chosen : [...chosen, own.value.trim()]
    if (all.length > 0) answer({ callId, answer: selection === 'several' ? all : all.at(-1) })
  }
  return h(
    'form',
    { onsubmit: send },
    h(
      'fieldset',
      {},
      h('legend', {}, text),
      ...choices.map(({ element }) => element),
      own,
      h('button', { type: 'submit' }, 'Send answer'),
      h('button', { type: 'button', onclick: () => answer({ callId, declined: true }) }, 'Decline'),
    ),
  )
}

function plan({ callId }: Waiting, { title, plan: text }: Plan, answer: Answer): HTMLElement {
  const feedback = h('input', { type: 'text', 'aria-label': 'Feedback on the plan', placeholder: 'Feedback' })
  const decide = (action: 'approved' | 'rejected'): void =>
    answer({ callId, answer: { action, ...(feedback.value !== '' && { feedback: feedback.value }) } })
  const approve = (event: Event): void => {
    event.preventDefault()
    decide('approved')
  }
  return h(
    'form',
    { onsubmit: approve },
    h(
      'fieldset',
      {},
      h('legend', {}, `Plan: ${title}`),
      h('p', { class: 'text' }, text),
      feedback,
      h('button', { type: 'submit' }, 'Approve plan'),
      h('button', { type: 'button', onclick: () => decide('rejected') }, 'Reject plan'),
    ),
  )
}

function verdict({ callId, toolName }: Waiting, answer: Answer): HTMLElement {
  const say = (outcome: string) => (): void => answer({ callId, answer: { outcome } })
  return h(
    'fieldset',
    {},
    h('legend', {}, `${toolName} was interrupted. Did it happen?`),
    h('button', { type: 'button', onclick: say('happened') }, 'It happened'),
    h('button', { type: 'button', onclick: say('did_not_happen') }, 'It did not happen'),
    h('button', { type: 'button', onclick: say('run_again') }, 'Run it again'),
  )
}
