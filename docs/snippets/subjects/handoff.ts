import { Harness } from 'thinharness'
import { decide } from 'thinharness/models'
import { Sessions } from 'thinharness/session'
import type { Chat, Sent } from 'thinharness/session'

const model = 'openai:gpt-5.5'
const desks = {
  sales: new Harness({ model, instructions: 'You help people who want to buy.' }),
  support: new Harness({ model, instructions: 'You help people whose device does not work.' }),
}
export const sessions = new Sessions({ modes: desks, defaultMode: 'sales' })

/** Before each message a small model decides who answers. The agent that takes over reads the whole conversation. */
export async function send(chat: Chat<typeof desks>, text: string): Promise<Sent> {
  const { choice } = await decide('openai:gpt-5.5-mini', {
    question: 'Who has to answer? Change the agent only if the subject has changed.',
    choices: ['sales', 'support'],
    context: { now: chat.snapshot.thread.mode, message: text },
  })
  if (choice !== chat.snapshot.thread.mode) await chat.setMode(choice)
  return chat.send(text)
}
