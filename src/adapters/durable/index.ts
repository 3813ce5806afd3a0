export { followLog } from './follow-log.js'
export { endingOf, endOfStretch, performStretch } from './perform-stretch.js'
export type { StretchEnding, StretchMeans, StretchWork } from './perform-stretch.js'
