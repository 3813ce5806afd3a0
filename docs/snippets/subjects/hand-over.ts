import { defineTool } from 'thinharness'
import type { Chat } from 'thinharness/session'
import { z } from 'zod'

/** While this call waits, a person has the conversation. */
export const handOver = defineTool({
  name: 'hand_over',
  description: 'Let a colleague talk to the customer, if they ask for a person or you cannot help.',
  parameters: z.object({ reason: z.string() }),
  async handler({ reason }, { ask }) {
    const { said } = await ask({ reason }, z.object({ said: z.string() }))
    return `A colleague has talked to the customer, and hands back to you. They said:\n${said}`
  },
})

const waiting = (chat: Chat) => chat.pending.find(({ toolName }) => toolName === 'hand_over')

/** A message of the customer: to the agent, or to the desk of the staff if they have the conversation. */
export async function onMessage(chat: Chat, text: string, toStaff: (text: string) => Promise<void>): Promise<void> {
  if (waiting(chat) === undefined) await chat.send(text)
  else await toStaff(text)
}

/** The person is done. The agent reads what was said, and goes on with the conversation. */
export async function handBack(chat: Chat, said: string, by: string): Promise<void> {
  const item = waiting(chat)
  if (item !== undefined) await chat.answer([{ callId: item.callId, answer: { said } }], { by })
}
