export { clearResults } from './clear-results.js'
export type { ClearResultsOptions } from './clear-results.js'
export type { TriggerOptions } from './options.js'
export { recall } from './recall.js'
