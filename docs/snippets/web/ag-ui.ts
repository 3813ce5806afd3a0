import { HttpAgent } from '@ag-ui/client'

/** Sends a message, and approves everything that waits for a person. */
export async function refund(agent = new HttpAgent({ url: '/api/agui', threadId: 'order_7' })): Promise<unknown> {
  agent.addMessage({ id: crypto.randomUUID(), role: 'user', content: 'Refund order 7.' })
  await agent.runAgent()

  // Approvals and questions are interrupts: each of them is answered.
  const resume = agent.pendingInterrupts.map(({ id }) => ({
    interruptId: id,
    status: 'resolved' as const,
    payload: { approved: true },
  }))
  return (await agent.runAgent({ resume })).result
}
