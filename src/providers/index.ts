export { fromAiSdk } from './ai-sdk/index.js'
export type { AiSdkCallOptions, AiSdkLanguageModel, AiSdkOptions } from './ai-sdk/index.js'
export { anthropic } from './anthropic/index.js'
export type { AnthropicApiVersion, AnthropicOptions } from './anthropic/index.js'
export { embedding } from './embedding/index.js'
export type { EmbeddingOptions, EmbeddingUsage, TextEmbedder } from './embedding/index.js'
export { gemini } from './google/index.js'
export type { GeminiOptions } from './google/index.js'
export { openai } from './openai/index.js'
export type { OpenAiOptions } from './openai/index.js'
export { openaiChat, openaiCompatible, openrouter } from './chat/index.js'
export type { ProviderFailure } from '#contracts/provider-failure.js'
export { httpModel } from './http-model.js'
export type { HttpApi, HttpReply, HttpReplyFold, HttpReplyOptions } from './http-model.js'
export { codeExecution, connector, fileSearch, imageGeneration, webFetch, webSearch } from './hosted/tools.js'
export type {
  CodeExecutionOptions,
  ConnectorOptions,
  FileSearchOptions,
  ImageGenerationOptions,
  WebFetchOptions,
  WebSearchOptions,
} from './hosted/tools.js'
export type { Citation, CitedSource, HostedPart, ImagePart } from '#contracts/entry.js'
export type { HostedTool } from '#core/model-session.js'
export { mendHistory } from '#contracts/mend.js'
export { inferModel } from './infer-model.js'
export type { ProviderOptions, ReasoningSummary, Timeouts } from './http/options.js'
export { probe } from './probe.js'
export type { ProbeCheck, ProbeCheckName, ProbeOptions, ProbeReport } from './probe.js'
