import { textOf } from 'thinharness'
import type { Sessions } from 'thinharness/session'

/** What people and the agent have said, as Markdown: to download, to print, or for a ticket. */
export async function asMarkdown(sessions: Sessions, threadId: string): Promise<string> {
  const said: string[] = []
  for (const entry of await sessions.messages(threadId)) {
    if (entry.role === 'user' && entry.notice !== true) {
      const texts = entry.content.map((part) => (part.type === 'text' ? part.text : `[${part.type}]`))
      said.push(`**User, ${entry.at}**\n\n${texts.join('\n')}`)
    }
    const reply = entry.role === 'assistant' ? textOf(entry.parts) : ''
    if (reply !== '') said.push(`**Agent, ${entry.at}**\n\n${reply}`)
  }
  return `${said.join('\n\n')}\n`
}
