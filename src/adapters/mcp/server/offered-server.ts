import type { CallToolResult, ListToolsResult, McpServerFactory, ServerContext } from '@modelcontextprotocol/server'
import type * as sdkModule from '@modelcontextprotocol/server'
import { callTool } from '#harness/try-tool.js'
import type { ToolOutcome } from '#core/tools/outcome.js'
import type { ToolAnnotations, ToolContext, ToolSpec } from '#core/tools/tool-spec.js'
import type { ContentPart } from '#contracts/entry.js'
import { isObject } from '#util/json.js'
import type { JsonInput, JsonObject, JsonValue } from '#util/json.js'
import { plainJson } from '#util/plain-json.js'
import { didYouMean } from '#util/suggest.js'
import { abortable } from '#util/abort.js'
import { CLIENT_INFO } from '../sdk/connect.js'

type ServerSdk = typeof sdkModule

/** The tools to serve, and the signal that ends serving. */
export interface Offered {
  readonly name: string
  readonly tools: readonly ToolSpec[]
  /** Workspace of tools without a root of their own. */
  readonly root: string
  readonly closing: AbortSignal
}

/** Creates servers that offer these tools: one per connection or per request. */
export function offeredServer(sdk: ServerSdk, offered: Offered): McpServerFactory {
  const { name, tools } = offered
  const definitions = tools.map(toolDefinition)
  return () => {
    const { server } = new sdk.McpServer({ name, version: CLIENT_INFO.version }, { capabilities: { tools: {} } })
    server.setRequestHandler('tools/list', () => ({ tools: definitions }) as unknown as ListToolsResult)
    server.setRequestHandler('tools/call', async ({ params }, context) => {
      const spec = tools.find((tool) => tool.name === params.name)
      if (spec !== undefined) return callResult(spec, (params.arguments ?? {}) as JsonObject, { context, offered })
      const known = tools.map((tool) => tool.name)
      throw new sdk.ProtocolError(
        sdk.ProtocolErrorCode.InvalidParams,
        `There is no tool \`${params.name}\`.${didYouMean(params.name, known)}`,
      )
    })
    return server
  }
}

function toolDefinition({ name, description, parameters, annotations = {} }: ToolSpec): JsonObject {
  return { name, description, inputSchema: parameters, annotations: annotationHints(annotations) }
}

function annotationHints({ readOnly, destructive, idempotent, openWorld }: ToolAnnotations): JsonObject {
  return {
    ...(readOnly !== undefined && { readOnlyHint: readOnly }),
    ...(destructive !== undefined && { destructiveHint: destructive }),
    ...(idempotent !== undefined && { idempotentHint: idempotent }),
    ...(openWorld !== undefined && { openWorldHint: openWorld }),
  }
}

async function callResult(
  spec: ToolSpec,
  args: JsonObject,
  { context: { mcpReq }, offered: { root, closing } }: { readonly context: ServerContext; readonly offered: Offered },
): Promise<CallToolResult> {
  let outcome: ToolOutcome | undefined
  // An envelope has no images: they are copied from the outcome.
  const call: ToolSpec['call'] = async (given, context) => {
    outcome = (await needsApproval(spec, given, context)) ? NO_APPROVAL : await spec.call(given, context)
    return outcome
  }
  const limit = spec.timeoutMs === undefined ? [] : [AbortSignal.timeout(spec.timeoutMs)]
  const signal = AbortSignal.any([mcpReq.signal, closing, ...limit])
  const context = { root, signal, progress: (update: JsonInput) => notifyProgress(mcpReq, plainJson(update)) }
  try {
    const { ok, content, metadata } = await abortable(callTool({ ...spec, call }, args, context), signal)
    const parts = outcome?.kind === 'succeeded' || outcome?.kind === 'failed' ? (outcome.parts ?? []) : []
    return {
      content: [{ type: 'text', text: content }, ...parts.map(contentBlock)],
      _meta: { 'thinharness/metadata': { ...metadata } },
      ...(!ok && { isError: true }),
    }
  } catch (error) {
    if (limit[0]?.aborted !== true) throw error
    const text = `The tool was ended after ${spec.timeoutMs ?? 0} ms; whether it did its work is unknown.`
    return { content: [{ type: 'text', text }], isError: true }
  }
}

async function needsApproval(
  { requiresApproval = false }: ToolSpec,
  args: JsonObject,
  { runId, callId, metadata }: ToolContext,
): Promise<boolean> {
  if (typeof requiresApproval === 'function') return requiresApproval(args, { runId, callId, metadata })
  return requiresApproval !== false
}

const NO_APPROVAL: ToolOutcome = {
  kind: 'failed',
  errorType: 'ApprovalRequired',
  content: 'This call requires an approval, which is not possible here. It was not executed.',
  retry: false,
}

/** Sends progress to a client that asked for it. A client that is gone does not fail the tool. */
function notifyProgress({ _meta, notify }: ServerContext['mcpReq'], update: JsonValue): void {
  const progressToken = _meta?.progressToken
  if (progressToken === undefined || !isObject(update) || typeof update['progress'] !== 'number') return
  const message = typeof update['message'] === 'string' ? { message: update['message'] } : {}
  const params = { progressToken, progress: update['progress'], ...message }
  notify({ method: 'notifications/progress', params }).catch(() => undefined)
}

function contentBlock(part: ContentPart): CallToolResult['content'][number] {
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
