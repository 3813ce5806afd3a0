import { useChat as useChat7 } from '@ai-sdk/react'
import { useChat as useChat5 } from 'ai-react5'
import { useChat as useChat6 } from 'ai-react6'
import { runTransport, whenAnswered } from 'thinharness/ui/client'
import { expect, expectTypeOf, test } from 'vitest'
import { useThread } from '../../../../docs/snippets/web/use-chat.js'

test('the transport fits `useChat` of the AI SDK 5, 6 and 7 without a type of its own', () => {
  const transport = runTransport({ api: '/api/chat' })
  // Compiled, not called: hooks work in a component only.
  const options = { id: 'a', transport, resume: true, sendAutomaticallyWhen: whenAnswered }
  const hooks = [() => useChat5(options), () => useChat6(options), () => useChat7(options)]

  expect(hooks).toHaveLength(3)
  expectTypeOf(useThread).returns.toHaveProperty('sendMessage')
})
