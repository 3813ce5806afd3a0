/** Names of options in other libraries, each with a sentence about the option to use. */
export type OtherNames = Readonly<Record<string, string>>

/** The same sentence for several names. */
function each(names: string, sentence: string): OtherNames {
  return Object.fromEntries(names.split(' ').map((name) => [name, sentence]))
}

/** On `Harness` and on a call. */
const SHARED: OtherNames = {
  ...each('system systemPrompt system_prompt systemMessage', 'Use `instructions`.'),
  ...each('maxSteps stopWhen maxTurns max_turns maxIterations recursionLimit', 'Use `limits: { modelRequests }`.'),
  ...each('timeout timeoutMs', 'Use `limits: { timeMs }`.'),
  ...each('plugins extensions', 'Use `use`, a list of extensions.'),
  ...each('middleware', 'Use `hooks`, `wrapModelCall` or `wrapToolCall` of `Harness`.'),
  ...each('context experimental_context', 'Use `deps`.'),
  ...each('functions', 'Use `tools`, a list of tools made by `defineTool`.'),
  ...each('memory checkpointer store', 'Use `log`, such as `fileLog(folder)`.'),
}

export const HARNESS_NAMES: OtherNames = {
  ...SHARED,
  ...each('maxTokens maxOutputTokens max_tokens maxCompletionTokens', 'Use `settings: { maxOutputTokens }`.'),
  temperature: 'Use `settings: { temperature }`.',
  toolChoice: 'Use `settings: { toolChoice }`.',
  providerOptions: 'Use `settings: { providerOptions }`.',
  ...each('reasoning reasoningEffort effort thinking', 'Use `settings: { reasoningEffort }`.'),
  ...each('schema output outputSchema responseFormat response_format experimental_output', 'Use `outputType`.'),
  ...each('agents handoffs', 'Use `subagents`.'),
  ...each('cwd workspace workingDirectory directory', 'Use `root`.'),
  ...each('mcp', 'Use `mcpServers`.'),
  ...each('maxRetries', 'Use `toolRetries` or `outputRetries`; requests are repeated by the model.'),
  ...each(
    'apiKey baseURL baseUrl',
    'It is an option of a model, as in `openai(id, { apiKey })` of `thinharness/providers`.',
  ),
  ...each('prompt input', 'It is the first argument of `run`.'),
  ...each('messages history', 'It belongs to a call: `run(prompt, { history })`; `fromMessages(messages)` makes one.'),
  ...each('abortSignal signal', 'It belongs to a call: `run(prompt, { signal })`.'),
  ...each('onStepFinish onFinish onError onChunk callbacks', 'Use `hooks`, or the events of `stream`.'),
}

export const RUN_NAMES: OtherNames = {
  ...SHARED,
  abortSignal: 'Use `signal`.',
  ...each('messages resumeFrom conversation', 'Use `history`; `fromMessages(messages)` makes one.'),
  ...each('threadId sessionId conversationId', 'Use `history: { runId }` to continue an earlier run.'),
  ...each('id run_id', 'Use `runId`.'),
  ...each('prompt input', 'It is the first argument of `run`.'),
  ...each('maxTokens maxOutputTokens max_tokens temperature toolChoice', 'Use `settings` of `Harness`.'),
  ...each('schema output outputType outputSchema responseFormat', 'Use `outputType` of `Harness`.'),
  ...each('root cwd builtinTools mcpServers subagents skills settings', 'It is an option of `Harness`.'),
  ...each('onStepFinish onFinish onError onChunk callbacks', 'Use `hooks` of `Harness`, or the events of `stream`.'),
}

export const TOOL_NAMES: OtherNames = {
  ...each('inputSchema input_schema schema args argsSchema', 'Use `parameters`.'),
  ...each('execute call run func fn function invoke callback', 'Use `handler`.'),
  ...each('needsApproval needs_approval requireApproval', 'Use `requiresApproval`.'),
  ...each('outputSchema output_schema', 'Leave it out: the result of `handler` is sent as it is.'),
  ...each('strict', 'Leave it out: the strict form of a schema is used if the provider has one.'),
  ...each('type', 'Leave it out: every tool is a function.'),
  timeout: 'Use `timeoutMs`.',
}

/** What to use for a provider that no reference can name. */
export const OTHER_PROVIDERS: OtherNames = each(
  'google gemini vertex google-vertex azure bedrock amazon-bedrock mistral groq xai deepseek cohere perplexity together togetherai fireworks cerebras',
  'Use `openrouter:…`, `fromAiSdk(model)` with its AI SDK package, or `openaiCompatible(id, { baseUrl })`, both of `thinharness/providers`.',
)
