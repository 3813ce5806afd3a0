import type { CallToolResult, ListToolsResult, McpServerFactory, ServerContext } from '@modelcontextprotocol/server'
import type * as sdkModule from '@modelcontextprotocol/server'
import { callTool } from '../tools/call.js'
import { parseEnvelope } from '../tools/envelope.js'
import type { ToolOutcome } from '../tools/outcome.js'
import type { ToolAnnotations, ToolSpec } from '../tools/spec.js'
import type { ContentPart } from '../transcript/entry.js'
import { isObject } from '../util/json.js'
import type { JsonObject, JsonValue } from '../util/json.js'
import { didYouMean } from '../util/suggest.js'
import { CLIENT_INFO } from './sdk-client.js'

type ServerSdk = typeof sdkModule

/** Makes servers that offer these tools: one a connection, or one a request. */
export function offeredServer(
  sdk: ServerSdk,
  name: string,
  tools: readonly ToolSpec[],
  closing: AbortSignal,
): McpServerFactory {
  const definitions = tools.map(definitionOf)
  return () => {
    const { server } = new sdk.McpServer({ name, version: CLIENT_INFO.version }, { capabilities: { tools: {} } })
    server.setRequestHandler('tools/list', () => ({ tools: definitions }) as unknown as ListToolsResult)
    server.setRequestHandler('tools/call', async ({ params }, context) => {
      const spec = tools.find((tool) => tool.name === params.name)
      if (spec !== undefined) return answered(spec, (params.arguments ?? {}) as JsonObject, context, closing)
      const known = tools.map((tool) => tool.name)
      throw new sdk.ProtocolError(
        sdk.ProtocolErrorCode.InvalidParams,
        `There is no tool \`${params.name}\`.${didYouMean(params.name, known)}`,
      )
    })
    return server
  }
}

function definitionOf({ name, description, parameters, annotations = {} }: ToolSpec): JsonObject {
  return { name, description, inputSchema: parameters, annotations: hintsOf(annotations) }
}

function hintsOf({ readOnly, destructive, idempotent, openWorld }: ToolAnnotations): JsonObject {
  return {
    ...(readOnly !== undefined && { readOnlyHint: readOnly }),
    ...(destructive !== undefined && { destructiveHint: destructive }),
    ...(idempotent !== undefined && { idempotentHint: idempotent }),
    ...(openWorld !== undefined && { openWorldHint: openWorld }),
  }
}

async function answered(
  spec: ToolSpec,
  args: JsonObject,
  { mcpReq }: ServerContext,
  closing: AbortSignal,
): Promise<CallToolResult> {
  let outcome: ToolOutcome | undefined
  // An envelope has no images: they are taken from the outcome as it passes.
  const heard: ToolSpec = { ...spec, call: async (given, context) => (outcome = await spec.call(given, context)) }
  const signal = AbortSignal.any([mcpReq.signal, closing])
  const envelope = parseEnvelope(await callTool(heard, args, { signal, progress: (update) => tell(mcpReq, update) }))
  const parts = outcome?.kind === 'succeeded' || outcome?.kind === 'failed' ? (outcome.parts ?? []) : []
  return {
    content: [{ type: 'text', text: envelope.content }, ...parts.map(blockOf)],
    _meta: { 'thinharness/metadata': { ...envelope.metadata } },
    ...(!envelope.ok && { isError: true }),
  }
}

/** Progress goes to a client that has asked for it; one that cannot be reached any more is no concern of the tool's. */
function tell({ _meta, notify }: ServerContext['mcpReq'], update: JsonValue): void {
  const progressToken = _meta?.progressToken
  if (progressToken === undefined || !isObject(update) || typeof update['progress'] !== 'number') return
  const message = typeof update['message'] === 'string' ? { message: update['message'] } : {}
  const params = { progressToken, progress: update['progress'], ...message }
  notify({ method: 'notifications/progress', params }).catch(() => undefined)
}

function blockOf(part: ContentPart): CallToolResult['content'][number] {
  switch (part.type) {
    case 'text':
      return { type: 'text', text: part.text }
    case 'image':
      return 'url' in part
        ? { type: 'resource_link', uri: part.url, name: 'image' }
        : { type: 'image', data: part.data, mimeType: part.mediaType }
    case 'audio':
      return { type: 'audio', data: part.data, mimeType: part.mediaType }
    case 'file': {
      const uri = `file:///${encodeURIComponent(part.name ?? 'file')}`
      return { type: 'resource', resource: { uri, blob: part.data, mimeType: part.mediaType } }
    }
  }
}
