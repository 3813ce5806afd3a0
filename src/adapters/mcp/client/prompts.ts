import { defineTool } from '#core/tools/define-tool.js'
import { ToolResult } from '#core/tools/tool-result.js'
import type { ToolSpec } from '#core/tools/tool-spec.js'
import type { ContentPart } from '#contracts/entry.js'
import { isObject, objectSchema } from '#util/json.js'
import type { JsonObject } from '#util/json.js'
import { contentParts, stringOrEmpty } from './result-content.js'
import { allPages } from '../sdk/connection.js'
import type { ServerUse } from './resources.js'
import type { ServerSettings } from './server-options.js'
import { publicToolName, mcpSource } from './tool-list.js'

/** A server's prompt templates. Every request may open the connection, and rejects with a `HarnessError`. */
export interface McpPrompts {
  /** All pages. */
  list(): Promise<readonly McpPrompt[]>
  /** A prompt with its arguments filled in. */
  get(name: string, args?: Readonly<Record<string, string>>): Promise<McpPromptMessages>
  /** `…_list_prompts` and `…_get_prompt`, as a model gets them with `offer: ['prompts']`. */
  asTools(): readonly ToolSpec[]
}

export interface McpPrompt {
  readonly name: string
  readonly description?: string
  readonly arguments: readonly { readonly name: string; readonly description?: string; readonly required: boolean }[]
}

export interface McpPromptMessages {
  readonly description: string
  readonly messages: readonly { readonly role: 'user' | 'assistant'; readonly content: readonly ContentPart[] }[]
}

export function serverPrompts({ settings, request }: ServerUse): McpPrompts {
  const prompts: McpPrompts = {
    list: () =>
      request(async (connection, timeoutMs) =>
        (await allPages(connection, { method: 'prompts/list', member: 'prompts' }, { timeoutMs })).map(describePrompt),
      ),
    get: (name, args = {}) =>
      request(async (connection, timeoutMs) =>
        promptMessages(await connection.request('prompts/get', { name, arguments: args }, { timeoutMs })),
      ),
    asTools: () => (tools ??= promptTools(prompts, settings)),
  }
  let tools: readonly ToolSpec[] | undefined
  return prompts
}

function promptTools(prompts: McpPrompts, { id, toolPrefix, reach }: ServerSettings): readonly ToolSpec[] {
  const prefix = toolPrefix || id
  const list = defineTool({
    name: publicToolName('list_prompts', prefix),
    description: `List the prompt templates of the server \`${id}\`, with their arguments.`,
    parameters: objectSchema([], {}),
    annotations: { readOnly: true },
    reach,
    metadata: mcpSource(id, 'prompts/list'),
    handler: async () => new ToolResult({ content: await prompts.list(), metadata: mcpSource(id, 'prompts/list') }),
  })
  const get = defineTool({
    name: publicToolName('get_prompt', prefix),
    description: `Get one prompt template of the server \`${id}\`, filled in.`,
    parameters: objectSchema(['name'], {
      name: { type: 'string' },
      arguments: { type: 'object', additionalProperties: { type: 'string' } },
    }),
    annotations: { readOnly: true },
    reach,
    metadata: mcpSource(id, 'prompts/get'),
    handler: async ({ name, arguments: args }) => {
      const { description, messages } = await prompts.get(stringOrEmpty(name), promptArguments(args))
      const lines = messages.map(({ role, content }) => `${role}: ${content.map(partLine).join('\n')}`)
      const parts = messages.flatMap(({ content }) => content).filter(({ type }) => type !== 'text')
      const content = [description, ...lines].filter((line) => line !== '').join('\n\n')
      return new ToolResult({
        content,
        metadata: { ...mcpSource(id, 'prompts/get'), prompt: stringOrEmpty(name) },
        parts,
      })
    },
  })
  return [list, get]
}

function describePrompt({ name, description, arguments: list }: JsonObject): McpPrompt {
  const args = Array.isArray(list) ? list.filter(isObject) : []
  return {
    name: stringOrEmpty(name),
    ...(typeof description === 'string' && { description }),
    arguments: args.map(({ name: each, description: what, required }) => ({
      name: stringOrEmpty(each),
      ...(typeof what === 'string' && { description: what }),
      required: required === true,
    })),
  }
}

function promptMessages(result: unknown): McpPromptMessages {
  const { description, messages } = isObject(result) ? result : {}
  if (!Array.isArray(messages)) throw new Error('The answer to `prompts/get` has no list `messages`.')
  return {
    description: stringOrEmpty(description),
    messages: messages.filter(isObject).map(({ role, content }) => ({
      role: role === 'assistant' ? 'assistant' : 'user',
      content: contentParts(content),
    })),
  }
}

function partLine(part: ContentPart): string {
  return part.type === 'text' ? part.text : `[${part.type}]`
}

function promptArguments(args: unknown): Record<string, string> {
  return isObject(args) ? Object.fromEntries(Object.entries(args).map(([key, value]) => [key, String(value)])) : {}
}
