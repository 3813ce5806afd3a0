export { conformance } from './conformance/conformance.js'
export type { ConformanceOptions, Law, LawName } from './conformance/conformance.js'
export type { ConformanceApi, ConformanceRequest, ReadRequest } from './conformance/stage.js'
export type { ConformanceServer } from './conformance/stage.js'
export type { Heard, HeardCall, HeardOutput, MessageContent, ScriptMessage, ScriptRequest } from './script-request.js'
export type { BreakFault, Chunks, DripFault, ProviderFault, StatusFault } from './delivery.js'
export { runLogContract } from './log-contract/contract.js'
export type { ContractLaw, LogContractOptions, LogLawName } from './log-contract/contract.js'
export type { ScriptedReply as Reply, ReplyPart, ScriptedCall } from './reply.js'
export { replayTest } from './replay-test.js'
export type { Replayed } from './replay-test.js'
export type { ScriptedAnswer, ScriptedRule } from './scripted-replies.js'
export { ScriptedModel } from './scripted-model.js'
export type { HeardRequest, ModelFailure, ModelRequest, ScriptedModelOptions } from './scripted-model.js'
export { scriptedProvider } from './scripted-provider.js'
export type {
  ProviderApi,
  ProviderRequest,
  RecordedRequest,
  ScriptedProvider,
  ScriptedProviderOptions,
} from './scripted-provider.js'
export type { WireBody, WireReply, ApiRequest } from './wire/api.js'
