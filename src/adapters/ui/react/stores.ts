export { createChatThreadStore, loadChatThread } from './thread-store.js'
export type {
  ChatThreadActions,
  ChatThreadOptions,
  ChatThreadState,
  ChatThreadStore,
  OutgoingMessage,
  SendMessageOptions,
  SentMessage,
} from './thread-store.js'
export { createRunStore } from './run-store.js'
export type { FollowedRunActions, FollowedRunOptions, FollowedRunState, FollowedRunStore } from './run-store.js'
export type { AnswerActions } from './answer-actions.js'
export { chatItems } from './chat-items.js'
export type { ChatItem } from './chat-items.js'
export type { RequestOutcome, ConnectionOptions, ConnectionStatus, LoadedChat, RequestHeaders } from './live-store.js'
export type { ReadableStore } from './readable-store.js'
