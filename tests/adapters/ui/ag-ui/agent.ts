import { HttpAgent } from '@ag-ui/client'
import type { BaseEvent, ResumeEntry, Tool } from '@ag-ui/client'
import type { Handlers } from 'thinharness/ui'
import { withoutWarnings } from './client.js'

export const URL_OF = 'http://localhost/api/agui'

export interface TestAgent {
  readonly agent: HttpAgent
  readonly events: BaseEvent[]
  /** Sends a message, or answers, and reads the stream. */
  send(text: string | null, resume?: readonly ResumeEntry[]): Promise<BaseEvent[]>
  /** The bodies of the next stream are cut after so many bytes. */
  cutAt: number | null
}

/** The official client over a handler, with these tools of its page. */
export function agentOf({ agUi }: Pick<Handlers, 'agUi'>, tools: readonly Tool[] = []): TestAgent {
  let count = 0
  const fetch = async (url: string, init: RequestInit): Promise<Response> => {
    const response = await agUi(new Request(url, init))
    const { cutAt } = test
    if (cutAt === null || response.body === null) return response
    const body = new Uint8Array(await response.arrayBuffer()).slice(0, cutAt)
    return new Response(body, { headers: response.headers })
  }
  const agent = new HttpAgent({ url: URL_OF, threadId: 'chat_1', fetch })
  const events: BaseEvent[] = []
  const test: TestAgent = {
    ...{ agent, events, cutAt: null },
    async send(text, resume) {
      if (text !== null) agent.addMessage({ id: `m${++count}`, role: 'user', content: text })
      const from = events.length
      const options = { runId: `stretch_${from}`, tools: [...tools], ...(resume && { resume: [...resume] }) }
      await withoutWarnings(() => agent.runAgent(options, { onEvent: ({ event }) => void events.push(event) }))
      return events.slice(from)
    },
  }
  return test
}
