// The client that the official conformance suite starts for each scenario: connects to the server at its last argument,
// calls every tool, and is authorized if required. The suite describes the scenario in the environment.
import { ClientCredentialsProvider, PrivateKeyJwtProvider } from '@modelcontextprotocol/client'
import type { JsonObject, ToolContext, ToolOutcome, ToolSpec } from 'thinharness'
import type { McpAuthProvider, McpServer } from '#adapters/mcp/index.js'
import { serverFetch } from '#adapters/mcp/client/server-fetch.js'
import { serverSettings } from '#adapters/mcp/client/server-options.js'
import { serverAt } from '#adapters/mcp/client/mcp-server.js'
import { isObject } from '#util/json.js'
import { Person } from './person.js'

/** The suite's description of a scenario, in addition to the address. */
interface Context {
  readonly client_id?: string
  readonly client_secret?: string
  readonly private_key_pem?: string
  readonly signing_algorithm?: string
  readonly toolCalls?: readonly { readonly name: string; readonly arguments: JsonObject }[]
}

const { MCP_CONFORMANCE_SCENARIO: scenario = '', MCP_CONFORMANCE_CONTEXT = '{}' } = process.env
const context = JSON.parse(MCP_CONFORMANCE_CONTEXT) as Context
const url = new URL(process.argv.at(-1) ?? '')
const person = new Person(scenario === 'auth/pre-registration' ? context : {})

const server = serverAt(
  { kind: 'http', url, fetch: serverFetch(url, {}), auth: scenario.startsWith('auth/') ? await provider() : null },
  serverSettings({ id: 'suite', timeouts: { connectMs: 10_000, callMs: 15_000 } }, { defaultId: '', reach: {} }),
)
await callEverything(server)
await server.close()

async function provider(): Promise<McpAuthProvider> {
  const { client_id: clientId = '', client_secret: clientSecret = '', private_key_pem: privateKey = '' } = context
  switch (scenario) {
    case 'auth/client-credentials-basic':
      return new ClientCredentialsProvider({ clientId, clientSecret, expectedIssuer: await issuer() })
    case 'auth/client-credentials-jwt':
      return new PrivateKeyJwtProvider({
        clientId,
        privateKey,
        algorithm: context.signing_algorithm ?? 'ES256',
        expectedIssuer: await issuer(),
      })
    default:
      return person
  }
}

/** The issuer of the server's tokens. An ordinary program knows it without asking. */
async function issuer(): Promise<string> {
  const { headers } = await fetch(url, { method: 'POST' })
  const [, metadata = ''] = /resource_metadata="([^"]+)"/.exec(headers.get('www-authenticate') ?? '') ?? []
  const { authorization_servers: servers } = (await (await fetch(metadata)).json()) as {
    authorization_servers: readonly string[]
  }
  return servers[0] ?? ''
}

async function callEverything(from: McpServer): Promise<void> {
  const host = {
    roots: [process.cwd()],
    warn: (message: string) => console.error(message),
    elicit: async () => ({ action: 'accept' as const, content: {} }),
  }
  const listed = (): Promise<readonly ToolSpec[]> => from.tools(host, new AbortController().signal)
  const tools = await authorized(listed)
  for (const tool of tools) {
    for (const args of argumentsFor(tool, tools)) {
      const outcome = await authorized(async () => tool.call(args, contextOf(tool.name)))
      console.error(tool.name, JSON.stringify(args).slice(0, 200), outcome.kind)
    }
  }
  await authorized(listed)
}

/** The arguments that the suite expects for a tool; else arguments that fit its schema. */
function argumentsFor({ name, parameters }: ToolSpec, tools: readonly ToolSpec[]): readonly JsonObject[] {
  const wanted = (context.toolCalls ?? []).filter((call) => call.name === name).map((call) => call.arguments)
  if (wanted.length > 0) return wanted
  const other = tools.find((tool) => tool.name !== name)
  if (name === 'json_schema_echo' && other !== undefined) return [{ schema: other.parameters }]
  return [sample(parameters) as JsonObject]
}

function sample(schema: unknown): JsonObject[string] {
  const { default: usual, enum: values, type, properties } = isObject(schema) ? schema : {}
  if (usual !== undefined) return usual as JsonObject
  if (Array.isArray(values)) return values[0] as string
  switch (Array.isArray(type) ? (type[0] as unknown) : type) {
    case 'number':
    case 'integer':
      return 5
    case 'boolean':
      return true
    case 'array':
      return []
    case 'string':
      return 'text'
    default:
      return Object.fromEntries(
        Object.entries(isObject(properties) ? properties : {}).map(([key, each]) => [key, sample(each)]),
      )
  }
}

/** Does it again once the person has been to the page that they were sent to, twice at most. */
async function authorized<T>(work: () => Promise<T>): Promise<T> {
  for (let times = 0; ; times++) {
    try {
      const value = await work()
      if (!isRefusal(value) || times === 2 || !person.wasSent) return value
    } catch (error) {
      if (times === 2 || !person.wasSent) throw error
    }
    await server.finishAuth(person.comesBack())
  }
}

function isRefusal(value: unknown): boolean {
  return isObject(value) && (value as Partial<ToolOutcome & { errorType: string }>).errorType === 'MCPError'
}

function contextOf(callId: string): ToolContext {
  const impossible = (): never => {
    throw new Error('There is no run here.')
  }
  return {
    runId: 'run_1',
    callId,
    toolName: callId,
    root: process.cwd(),
    depth: 0,
    idempotencyKey: callId,
    metadata: {},
    deps: undefined,
    signal: new AbortController().signal,
    progress: () => undefined,
    ask: impossible,
    decide: impossible,
    spawn: impossible,
  }
}
