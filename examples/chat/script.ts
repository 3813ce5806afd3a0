import type { ProviderFault, ProviderRequest, Reply } from 'thinharness/testing'

const STORY = `Order 7 was packed on Monday and left the warehouse on Tuesday. The carrier lost it for a day, found it again in
another town, and brought it on Friday. The box was wet, and two of the cups in it were broken. The customer wrote the same
evening, sent three pictures, and asked for the money of the two cups. Nobody has answered yet.`

/** The calls that carry the plan out, one after the other. */
const PLANNED: readonly (readonly [name: string, args: object])[] = [
  [
    'task_write',
    {
      tasks: [
        { id: '1', content: 'Refund the cups', activeForm: 'Refunding the cups', status: 'in_progress' },
        { id: '2', content: 'Write to the customer', activeForm: 'Writing to the customer', status: 'pending' },
      ],
    },
  ],
  ['refund', { order: '7', cents: 1800 }],
  ['task_complete', { id: '1' }],
  ['mail_customer', { order: '7', text: 'We have refunded the two cups.' }],
  ['task_complete', { id: '2' }],
]

/** The scripted replies for use without a model: they follow words of the message. */
export function answer({ heard, messages }: ProviderRequest): Reply | ProviderFault {
  if (heard.kind === 'tool_outputs') return afterCall(messages, heard.outputs.at(-1)?.content ?? '')
  const said = 'prompt' in heard && typeof heard.prompt === 'string' ? heard.prompt.toLowerCase() : ''
  if (said.includes('story')) return slowly(STORY)
  if (said.includes('plan'))
    return call('submit_plan', { title: 'Order 7', plan: '1. Refund the cups.\n2. Write to the customer.' })
  if (said.includes('ask'))
    return call('ask_user', { question: 'Which order is it?', options: [{ label: 'Order 7' }, { label: 'Order 8' }] })
  if (said.includes('refund')) return call('refund', { order: '7', cents: 6450 })
  if (said.includes('order')) return call('look_up_order', { order: '7' })
  return slowly('Ask me about an order, for a refund, a plan, a question or a story.')
}

function afterCall(messages: ProviderRequest['messages'], content: string): Reply | ProviderFault {
  const calls = messages.flatMap((message) => (message.role === 'assistant' ? message.calls : []))
  const planned = calls.slice(calls.findLastIndex(({ name }) => name === 'submit_plan'))
  const isPlan = planned[0]?.name === 'submit_plan' && !content.startsWith('The plan is not')
  const next = isPlan ? PLANNED[planned.length - 1] : undefined
  return next === undefined ? slowly(isPlan ? 'Everything is done.' : `The result: ${content}`) : call(...next)
}

function call(name: string, args: object): Reply {
  return { text: 'One moment.', calls: [{ name, arguments: JSON.stringify(args) }] }
}

/** As a model writes: a few words at a time. */
function slowly(text: string): ProviderFault {
  return { fault: 'drip', reply: { text }, bytes: 120, everyMs: 15 }
}
