export { followLog } from './follow.js'
export { endingOf, endOfStretch, performStretch } from './stretch.js'
export type { StretchEnding, StretchMeans, StretchWork } from './stretch.js'
