export { reduceChat } from '../../session/thread/reduce-chat.js'
export type { ChatCall, ChatRun, ChatSnapshot, OpenReply } from '../../session/thread/reduce-chat.js'
export { FollowError, followRun } from './follow-run.js'
export type { FollowedEvent, FollowOptions } from './follow-run.js'
