import { useState } from 'react'
import type { ReactNode, SubmitEvent } from 'react'
import type { ChatThread } from 'thinharness/ui/react'
import { pretty } from './conversation.js'

type Item = ChatThread['pending'][number]
type OtherCall = NonNullable<Item['otherCalls']>[number]

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

interface WaitingProps {
  readonly item: Item
  readonly answer: ChatThread['answer']
  /** An answer is on its way: another one cannot be given. */
  readonly isAnswering: boolean
}

/** The form for something that waits for a person. */
export function Waiting(props: WaitingProps): ReactNode {
  const { kind, payload } = props.item as { readonly kind: string; readonly payload?: Question | Plan | null }
  if (kind === 'approval') return <ApprovalForm {...props} />
  if (kind === 'unknown_outcome') return <VerdictForm {...props} />
  if (payload?.kind === 'plan') return <PlanForm {...props} plan={payload} />
  return <QuestionForm {...props} question={payload?.kind === 'question' ? payload : freeQuestion(props.item)} />
}

interface FormProps {
  readonly title: string
  readonly isAnswering: boolean
  readonly onSubmit?: (event: SubmitEvent<HTMLFormElement>) => void
  readonly children: ReactNode
}

function Form({ title, isAnswering, onSubmit, children }: FormProps): ReactNode {
  const submit = (event: SubmitEvent<HTMLFormElement>): void => {
    event.preventDefault()
    onSubmit?.(event)
  }
  return (
    <form onSubmit={submit}>
      <fieldset disabled={isAnswering}>
        <legend>{title}</legend>
        {children}
      </fieldset>
    </form>
  )
}

function freeQuestion({ toolName, payload }: Item): Question {
  const question = `${toolName}: ${JSON.stringify(payload ?? null)}`
  return { kind: 'question', question, options: [], selection: 'text' }
}

function ApprovalForm({ item, answer, isAnswering }: WaitingProps): ReactNode {
  const { callId, toolName, arguments: text, otherCalls = [] } = item
  const [edited, setEdited] = useState(pretty(text))
  const [reason, setReason] = useState('')
  const [problem, setProblem] = useState('')
  const approve = (): void => {
    try {
      const editedArguments = JSON.parse(edited) as Record<string, never>
      void answer({ callId, approved: true, ...(edited !== pretty(text) && { editedArguments }) })
    } catch {
      setProblem('The arguments are not valid JSON.')
    }
  }
  const reject = (): void => void answer({ callId, approved: false, ...(reason !== '' && { reason }) })
  return (
    <Form title={`May ${toolName} run?`} isAnswering={isAnswering} onSubmit={approve}>
      <textarea
        className="code"
        rows={4}
        aria-label={`Arguments of ${toolName}`}
        value={edited}
        onChange={({ target }) => setEdited(target.value)}
      />
      <p className="bad" role="alert">
        {problem}
      </p>
      <input
        type="text"
        aria-label="Reason for a rejection"
        placeholder="Reason, if you reject"
        value={reason}
        onChange={({ target }) => setReason(target.value)}
      />
      <OtherCalls calls={otherCalls} />
      <button type="submit">Approve</button>
      <button type="button" onClick={reject}>
        Reject
      </button>
    </Form>
  )
}

/** The other calls of the same reply: what one of them does can depend on the rest. */
function OtherCalls({ calls }: { readonly calls: readonly OtherCall[] }): ReactNode {
  if (calls.length === 0) return null
  return (
    <>
      <p>Other calls of the same reply:</p>
      <ul>
        {calls.map(({ toolName, arguments: text, when }, index) => (
          <li key={index}>
            {`${toolName} ${text ?? '(waits for an answer of its own)'}, ${when === 'ended' ? 'has run' : when}`}
          </li>
        ))}
      </ul>
    </>
  )
}

function QuestionForm(props: WaitingProps & { readonly question: Question }): ReactNode {
  const { item, answer, isAnswering, question } = props
  const { callId } = item
  const { question: text, options, selection } = question
  const send = (event: SubmitEvent<HTMLFormElement>): void => {
    const form = new FormData(event.currentTarget)
    const own = (form.get('own') as string).trim()
    const all = [...form.getAll('choice').map(String), ...(own === '' ? [] : [own])]
    const last = all.at(-1)
    if (last !== undefined) void answer({ callId, answer: selection === 'several' ? all : last })
  }
  return (
    <Form title={text} isAnswering={isAnswering} onSubmit={send}>
      {options.map(({ label, description }) => (
        <label key={label} className="choice">
          <input type={selection === 'several' ? 'checkbox' : 'radio'} name="choice" value={label} />
          {` ${label}${description === undefined ? '' : ` — ${description}`}`}
        </label>
      ))}
      <input type="text" name="own" aria-label="Your answer" placeholder="Your answer" />
      <button type="submit">Send answer</button>
      <button type="button" onClick={() => void answer({ callId, declined: true })}>
        Decline
      </button>
    </Form>
  )
}

function PlanForm({ item, plan, answer, isAnswering }: WaitingProps & { readonly plan: Plan }): ReactNode {
  const { callId } = item
  const [feedback, setFeedback] = useState('')
  const decide = (action: 'approved' | 'rejected'): void =>
    void answer({ callId, answer: { action, ...(feedback !== '' && { feedback }) } })
  return (
    <Form title={`Plan: ${plan.title}`} isAnswering={isAnswering} onSubmit={() => decide('approved')}>
      <p className="text">{plan.plan}</p>
      <input
        type="text"
        aria-label="Feedback on the plan"
        placeholder="Feedback"
        value={feedback}
        onChange={({ target }) => setFeedback(target.value)}
      />
      <button type="submit">Approve plan</button>
      <button type="button" onClick={() => decide('rejected')}>
        Reject plan
      </button>
    </Form>
  )
}

function VerdictForm({ item, answer, isAnswering }: WaitingProps): ReactNode {
  const { callId, toolName } = item
  const say = (outcome: string) => (): void => void answer({ callId, answer: { outcome } })
  return (
    <Form title={`${toolName} was interrupted. Did it happen?`} isAnswering={isAnswering}>
      <button type="button" onClick={say('happened')}>
        It happened
      </button>
      <button type="button" onClick={say('did_not_happen')}>
        It did not happen
      </button>
      <button type="button" onClick={say('run_again')}>
        Run it again
      </button>
    </Form>
  )
}
