export { serveAcp } from './serve.js'
export type { AcpServing } from './serve.js'
export type { AcpOptions, AgentInfo, Remember } from './options.js'
