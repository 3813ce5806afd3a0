// The loop that one writes by hand: global `fetch`, and the whole history as JSON in each request.
import { answered, headOf, Lines } from './replies.js'
import type { Contender, OnDelta, Setting } from '../work.js'
import type { Reply } from './replies.js'

export function open({ baseUrl, tool }: Setting): Contender {
  async function run(prompt: string, onDelta?: OnDelta): Promise<string> {
    const head = headOf(tool, onDelta !== undefined)
    const input: object[] = [{ role: 'user', content: prompt }]
    for (;;) {
      const response = await fetch(`${baseUrl}/responses`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: 'Bearer none' },
        body: JSON.stringify({ ...head, input }),
      })
      if (!response.ok) throw new Error(`Status ${response.status}: ${await response.text()}`)
      const reply = onDelta === undefined ? await response.json() : await streamedReply(response, onDelta)
      const { text, added } = await answered(reply as Reply, tool)
      if (added.length === 0) return text
      input.push(...added)
    }
  }
  return { ask: (prompt) => run(prompt), listen: run }
}

async function streamedReply(response: Response, onDelta: OnDelta): Promise<Reply> {
  const lines = new Lines(onDelta)
  const decoder = new TextDecoder()
  let rest = ''
  for await (const bytes of response.body as AsyncIterable<Uint8Array>) {
    const read = (rest + decoder.decode(bytes, { stream: true })).split('\n')
    rest = read.pop() ?? ''
    for (const line of read) lines.add(line)
  }
  return lines.reply
}
