import type { InboxItem } from 'thinharness/session'
import { ask, byId, h, shown } from './dom.js'

const EVERY_MS = 2000

/** Messages in the form of the AI SDK. */
type Messages = readonly {
  readonly role: string
  readonly parts: readonly { readonly type: string; readonly text?: string }[]
}[]

/** The forms on the page, by the run and call that they are about: one that is being filled in stays as it is. */
const forms = new Map<string, HTMLElement>()

async function refresh(): Promise<void> {
  const [waiting, decided] = await Promise.all([
    ask<{ items: readonly InboxItem[] }>('/staff/api/inbox'),
    ask<{ items: readonly InboxItem[] }>('/staff/api/inbox?answered'),
  ])
  const items = new Map(waiting.items.map((each) => [`${each.runId}/${each.item.callId}`, each]))
  for (const [key, form] of forms) {
    if (items.has(key)) continue
    form.remove()
    forms.delete(key)
  }
  for (const [key, item] of items) if (!forms.has(key)) forms.set(key, byId('inbox').appendChild(formOf(item)))
  byId('decided').replaceChildren(...decided.items.slice(0, 20).map(decidedView))
  byId('status').textContent = items.size === 0 ? 'Nothing waits' : `${items.size} waiting`
}

function formOf({ threadId, resourceId, firstMessage, askedAt, item }: InboxItem): HTMLElement {
  const { callId, toolName, arguments: args } = item
  const text = JSON.stringify(JSON.parse(args), null, 2)
  const edited = h('textarea', { rows: '5', 'aria-label': `Arguments of ${toolName}` })
  edited.value = text
  const reason = h('input', {
    type: 'text',
    'aria-label': 'Reason for a refusal',
    placeholder: 'Reason, if you refuse',
  })
  const always = h('input', { type: 'checkbox' })
  const said = h('pre')
  const answer = (given: object): Promise<boolean> =>
    shown(ask(`/staff/api/threads/${threadId}/answers`, { answers: [{ callId, ...given }] }).then(refresh))
  const approve = (event: Event): void => {
    event.preventDefault()
    void shown(Promise.resolve().then(() => answer(approval(edited.value, { text, isRemembered: always.checked }))))
  }
  const refuse = (): void => void answer({ approved: false, reason: reason.value || 'The staff said no.' })
  const read = async (): Promise<void> => {
    said.textContent = linesOf(await ask<Messages>(`/staff/api/threads/${threadId}/messages?format=ui`))
  }
  return h(
    'form',
    { onsubmit: approve },
    h(
      'fieldset',
      {},
      h('legend', {}, `${toolName} for ${resourceId ?? 'nobody'}, since ${new Date(askedAt).toLocaleString()}`),
      h('details', { ontoggle: () => void shown(read()) }, h('summary', {}, firstMessage), said),
      ...[edited, reason],
      h('p', {}, h('label', {}, always, ' Approve further refunds of this order in this conversation')),
      h('button', { type: 'submit' }, 'Approve'),
      h('button', { type: 'button', onclick: refuse }, 'Refuse'),
    ),
  )
}

/** Throws a `SyntaxError` for arguments that are no JSON. */
function approval(edited: string, shownAs: { readonly text: string; readonly isRemembered: boolean }): object {
  const args = JSON.parse(edited) as { readonly orderId: string }
  const rule = { decision: 'allow', tool: 'refund', args: { orderId: args.orderId } }
  return {
    approved: true,
    ...(edited !== shownAs.text && { editedArguments: args }),
    ...(shownAs.isRemembered && { remember: rule }),
  }
}

function decidedView({ resourceId, item, answered }: InboxItem): HTMLElement {
  const { answer, by, at } = answered ?? { answer: {}, by: null, at: '' }
  const verdict = 'approved' in answer && answer.approved ? 'approved' : 'refused'
  return h(
    'li',
    {},
    `${new Date(at).toLocaleString()}: ${by ?? 'somebody'} ${verdict} ${item.toolName} for ${resourceId ?? 'nobody'}`,
  )
}

function linesOf(messages: Messages): string {
  return messages.map(({ role, parts }) => `${role}: ${parts.map(({ text = '' }) => text).join(' ')}`).join('\n')
}

async function poll(): Promise<void> {
  for (;;) {
    await shown(refresh())
    await new Promise((resolve) => setTimeout(resolve, EVERY_MS))
  }
}

void poll()
