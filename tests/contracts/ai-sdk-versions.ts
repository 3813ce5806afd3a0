import * as ai5 from 'ai5'
import { MockLanguageModelV2 } from 'ai5/test'
import * as ai6 from 'ai6'
import { MockLanguageModelV3 } from 'ai6/test'
import * as ai7 from 'ai7'
import { MockLanguageModelV4 } from 'ai7/test'

interface Generated {
  readonly response: { readonly messages?: readonly object[] }
  /** Since version 7. */
  readonly responseMessages?: readonly object[]
}

/** The names of the packages that the tests use, whose types differ from version to version. */
interface AiPackage {
  readonly convertToModelMessages: (messages: readonly object[]) => readonly object[] | Promise<readonly object[]>
  readonly generateText: (options: object) => Promise<Generated>
  readonly jsonSchema: (schema: object) => object
  readonly tool: (tool: object) => object
  readonly stepCountIs: (count: number) => object
}

export interface AiSdk {
  readonly version: 5 | 6 | 7
  readonly ai: AiPackage
  /** The package's mock model with these replies. */
  readonly model: (replies: readonly (readonly object[])[]) => object
}

type Version = AiSdk['version']

function versions<Name extends Version, Value>(each: Readonly<Record<Name, Value>>): Readonly<Record<Name, unknown>> {
  return each
}

const PACKAGES = versions({ 5: ai5, 6: ai6, 7: ai7 }) as Readonly<Record<Version, AiPackage>>
const MOCKS = versions({ 5: MockLanguageModelV2, 6: MockLanguageModelV3, 7: MockLanguageModelV4 }) as Readonly<
  Record<Version, new (options: object) => object>
>

export const AI_SDKS: readonly AiSdk[] = ([5, 6, 7] as const).map((version) => ({
  version,
  ai: PACKAGES[version],
  model: (replies) => {
    const left = [...replies]
    return new MOCKS[version]({ doGenerate: () => Promise.resolve(replyOf(version, left.shift() ?? [])) })
  },
}))

function replyOf(version: Version, content: readonly object[]): object {
  const calls = content.some((part) => 'type' in part && part.type === 'tool-call')
  const reason = calls ? 'tool-calls' : 'stop'
  if (version === 5)
    return {
      content,
      finishReason: reason,
      usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 },
      warnings: [],
    }
  const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } }
  return { content, finishReason: { unified: reason, raw: reason }, usage, warnings: [] }
}
