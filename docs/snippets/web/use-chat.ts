import { useChat } from '@ai-sdk/react'
import { runTransport, whenAnswered } from 'thinharness/ui/client'

const transport = runTransport({ api: '/api/chat' })

export function useThread(threadId: string) {
  return useChat({ id: threadId, transport, resume: true, sendAutomaticallyWhen: whenAnswered })
}
