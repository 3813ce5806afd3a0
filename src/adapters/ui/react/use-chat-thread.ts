import { useMemo, useSyncExternalStore } from 'react'
import { createChatThreadStore } from './thread-store.js'
import type { ChatThreadActions, ChatThreadOptions, ChatThreadState, ChatThreadStore } from './thread-store.js'
import { useSource } from './use-store.js'

/** A conversation, what a page can do with it, and its store for the components below. */
export interface ChatThread extends ChatThreadState, ChatThreadActions {
  readonly store: ChatThreadStore
}

/**
 * A conversation in a component: `runs`, `pending`, `queue`, `phase` and the rest of its state, and the functions `send`, `steer`,
 * `stop`, `approve` and the others. It is followed while the component is mounted, and connected again when the connection is lost. With
 * a store in place of options, several components share one conversation.
 *
 * @example
 * const { runs, pending, send, approve } = useChatThread({ threadId: 't1', api: '/api' })
 * const items = chatItems(runs)
 * const ask = () => send('Where is my order?')
 */
export function useChatThread(source: ChatThreadOptions | ChatThreadStore): ChatThread {
  const store = useSource({ source, keyOf: threadKey, create: createChatThreadStore })
  const state = useSyncExternalStore(store.subscribe, store.getSnapshot, store.getServerSnapshot)
  return useMemo(() => ({ ...store, ...state, store }), [store, state])
}

/**
 * The store of a conversation for the components below, which read their parts of it with `useStore`. The component itself does not
 * render again when the conversation changes.
 *
 * @example
 * const chat = useChatThreadStore({ threadId: 't1' })
 * const phase = useStore(chat, (state) => state.phase)
 */
export function useChatThreadStore(options: ChatThreadOptions): ChatThreadStore {
  return useSource({ source: options, keyOf: threadKey, create: createChatThreadStore })
}

function threadKey({ api = '', threadId }: ChatThreadOptions): string {
  return `${api} ${threadId}`
}
