export { Sessions, Threads } from './sessions.js'
export type { CreateOptions, ListThreadsOptions, ThreadItem } from './sessions.js'
export type { InboxItem, InboxOptions } from './people/inbox.js'
export type { Responder } from './people/responder.js'
export type { FirstExchange, TitleMaker } from './people/titles.js'
export type { ExpiredItem, ExpireOptions, ItemAnswer } from './people/expire-items.js'
export type { SessionLimits, SessionsOptions } from './options.js'
export { copyLogs } from './copy-logs.js'
export type { CopiedLogs } from './copy-logs.js'
export { Chat, ChatQueue } from './conversation/chat.js'
export type { MessageEnd, SendOptions, Sent, SentStatus, WhenBusy } from './conversation/message.js'
export type { AnswerStatus, CancelQueue } from './conversation/actions.js'
export type { ChatPhase } from './conversation/conversation.js'
export type { ChatEvent } from './thread/chat-cursor.js'
export type { EventsOptions } from './conversation/feed.js'
export { SessionError } from './errors.js'
export type { SessionErrorCode, StoredError } from './errors.js'
export type { ModeHarness, Modes, OutputOf } from './conversation/modes.js'
export type { ChatResources } from './conversation/run-starter.js'
export { reduceConversation as reduceChat } from './thread/transcript.js'
export type { ChatCall, ChatRun, ChatSnapshot, OpenReply } from './thread/reduce-chat.js'
export { applyThread } from './thread/thread-state.js'
export type { ThreadHistory, ThreadRun, ThreadState } from './thread/thread-state.js'
export type {
  QueueItem,
  ReplacedRuns,
  RunPlace,
  ThreadEvent,
  ThreadEventBase,
  ThreadEventOf,
  ThreadPayloads,
} from './thread/thread-events.js'
export type { Grant } from './thread/thread-events.js'
export type { ChatAnswer } from './thread/grants.js'
export { askUser } from './tools/ask-people.js'
export type { QuestionOption, UserQuestion } from './tools/ask-people.js'
export { submitPlan } from './tools/ask-people.js'
export type { PlanAnswer, SubmittedPlan } from './tools/ask-people.js'
export { tasks } from './tools/tasks.js'
export type { Task, TaskStatus } from './tools/task-list.js'
export { requestAccess } from './tools/ask-people.js'
export type { AccessAnswer, AccessRequest } from './tools/ask-people.js'
export type { ChatCallAnswer } from './thread/reduce-chat.js'
