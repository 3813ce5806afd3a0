import { defineTool } from '#core/tools/define-tool.js'
import { ToolResult } from '#core/tools/tool-result.js'
import type { JsonSchema } from '#util/json.js'
import type { PendingItem } from '#contracts/result.js'
import type { ToolSpec } from '#core/tools/tool-spec.js'
import { isObject, objectSchema } from '#util/json.js'
import { isPayload } from './result.js'

/** A tool that a page executes: a call of it waits until the page sends the result. */
export interface ClientTool {
  readonly name: string
  readonly description: string
  /** JSON Schema of the arguments. */
  readonly parameters: JsonSchema
}

/** The payload of the pending item of a call that a page executes. */
export interface ClientToolCall {
  readonly kind: 'client_tool'
}

/** Member of the metadata of a run: its client tools. They are stored with the run, so that any process can continue it. */
export const CLIENT_TOOLS = 'client_tools'

/** The text of a result, or `{ error }`. */
const RESULT: JsonSchema = {
  anyOf: [{ type: 'string' }, objectSchema(['error'], { error: { type: 'string' } })],
}

/** The client tools in the metadata of a run. Throws `invalid_options` for one that cannot be sent to a model. */
export function readClientTools(metadata: object | undefined): readonly ToolSpec[] {
  const tools: unknown = isObject(metadata) ? metadata[CLIENT_TOOLS] : undefined
  return Array.isArray(tools) ? tools.filter(isClientTool).map(clientToolSpec) : []
}

/** True for the call of a client tool by the run itself. Those of child runs are questions like others. */
export function isClientCall({ payload, path }: PendingItem): boolean {
  return path.length <= 1 && isPayload<ClientToolCall>(payload, 'client_tool')
}

function isClientTool(value: unknown): value is ClientTool {
  const { name, description, parameters } = isObject(value) ? value : {}
  return typeof name === 'string' && typeof description === 'string' && isObject(parameters)
}

function clientToolSpec({ name, description, parameters }: ClientTool): ToolSpec {
  const call: ClientToolCall = { kind: 'client_tool' }
  return defineTool({
    name,
    description,
    parameters,
    handler: async (_, { ask }) => {
      const result = (await ask({ ...call }, RESULT)) as unknown as string | { readonly error: string }
      return typeof result === 'string' ? result : new ToolResult({ ok: false, content: result.error })
    },
  })
}
