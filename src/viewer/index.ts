export { viewer } from './viewer.js'
export type { RedactViewed, ViewedEvent, ViewerOptions, ViewerSource } from './gather-logs.js'
export { viewerHandler } from './viewer-handler.js'
export type { AnswerViewed, LiveViewerOptions } from './live-answers.js'
