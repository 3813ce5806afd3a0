import { Readable, Writable } from 'node:stream'
import type { AgentApp } from '@agentclientprotocol/sdk'
import { takeOutput } from '../util/platform/standard-output.js'
import { isObject } from '../util/json.js'
import { AcpAgent } from './agent.js'
import { AcpFailure, internalError, invalidParams, invalidRequest } from './failures.js'
import { checkSessions, parseAcpOptions } from './options.js'
import type { AcpOptions } from './options.js'
import { acpSdk } from './sdk.js'
import type { AcpSdk } from './sdk.js'
import type { ServedSessions } from './served.js'

/** How long a program may take to end by itself when its editor is gone, in ms. */
const PATIENCE_MS = 1500

/** An agent that an editor is connected to. */
export interface AcpServing extends AsyncDisposable {
  /** Resolves when serving has ended: after `close`, or when the editor is gone. Never rejects. */
  readonly closed: Promise<void>
  /** Stops serving, as when the editor is gone. */
  close(): Promise<void>
}

/**
 * Makes this process an agent for editors that speak the Agent Client Protocol, version 1: a session of the editor is a thread, with
 * its folder as the workspace of its runs. When the editor is gone, prompts under way are cancelled, and a process that serves over
 * standard input ends within 2 s. The caller closes the sessions and the harnesses.
 *
 * Needs the package `@agentclientprotocol/sdk`. Rejects with `invalid_options` or `missing_dependency`.
 *
 * @example
 * await serveAcp(new Sessions({ log: fileLog('.sessions'), harness: new Harness({ model: 'anthropic:claude-sonnet-5', root: '.' }) }))
 */
export async function serveAcp(sessions: ServedSessions, options: AcpOptions = {}): Promise<AcpServing> {
  checkSessions(sessions)
  const parsed = parseAcpOptions(options)
  const { input = process.stdin, output } = parsed
  const sdk = await acpSdk()
  const agent = new AcpAgent(sessions, parsed)
  const { protocol, giveBack } =
    output === undefined ? takeOutput() : { protocol: output, giveBack: (): void => undefined }
  const stream = sdk.ndJsonStream(Writable.toWeb(protocol) as WritableStream<Uint8Array>, Readable.toWeb(input))
  const connection = appOf(sdk, agent).connect(stream)
  const closed = connection.closed.then(async () => {
    await agent.close()
    protocol.end()
    giveBack()
    // A timer or a socket of the program must not keep it alive without its editor.
    if (parsed.input === undefined) setTimeout(() => process.exit(0), PATIENCE_MS).unref()
  })
  const close = async (): Promise<void> => {
    await agent.close()
    connection.close()
    await closed
  }
  return { closed, close, [Symbol.asyncDispose]: close }
}

/** The methods of the protocol. */
function appOf(sdk: AcpSdk, agent: AcpAgent): AgentApp {
  const told = tellFailures(sdk)
  return sdk
    .agent({ name: 'thinharness' })
    .onRequest(
      'initialize',
      told(({ params }) => agent.initialize(params)),
    )
    .onRequest('authenticate', () => ({}))
    .onRequest(
      'session/new',
      told(({ params, client }) => agent.begin(params, client)),
    )
    .onRequest(
      'session/load',
      told(({ params, client }) => agent.load(params, { client, replays: true })),
    )
    .onRequest(
      'session/resume',
      told(({ params, client }) => agent.load(params, { client, replays: false })),
    )
    .onRequest(
      'session/list',
      told(({ params }) => agent.list(params.cwd ?? null, params.cursor ?? null)),
    )
    .onRequest(
      'session/close',
      told(async ({ params }) => agent.forget(params.sessionId)),
    )
    .onRequest(
      'session/set_mode',
      told(async ({ params }) => agent.setMode(params.sessionId, params.modeId)),
    )
    .onRequest(
      'session/set_config_option',
      told(async ({ params }) => ({
        configOptions: await agent.setOption(params.sessionId, params.configId, params.value),
      })),
    )
    .onRequest(
      'session/prompt',
      told(({ params, signal }) => {
        const session = agent.session(params.sessionId)
        if (!session.isPrompted) return session.prompt(params.prompt, signal)
        if (isSteering(params._meta)) return session.steer(params.prompt, signal)
        throw invalidRequest('A prompt of this session is under way: cancel it, or steer it.')
      }),
    )
    .onRequest(
      '_thinharness/recover',
      sessionIdIn,
      told(({ params, signal }) => agent.session(params.sessionId).recover(signal)),
    )
    .onNotification('session/cancel', ({ params }) => agent.cancel(params.sessionId))
}

/** Failures as errors of the protocol: those of the program are in no answer. */
function tellFailures(sdk: AcpSdk) {
  return <Context, Response>(handler: (context: Context) => Response | Promise<Response>) =>
    async (context: Context): Promise<Response> => {
      try {
        return await handler(context)
      } catch (error) {
        if (error instanceof sdk.RequestError) throw error
        const failure = error instanceof AcpFailure ? error : internalError('Something went wrong.', codeIn(error))
        throw new sdk.RequestError(failure.code, failure.message, failure.data)
      }
    }
}

function codeIn(error: unknown): { readonly code: string } | undefined {
  return isObject(error) && typeof error['code'] === 'string' ? { code: error['code'] } : undefined
}

function isSteering(meta: unknown): boolean {
  const own = isObject(meta) ? meta['thinharness'] : undefined
  return isObject(own) && own['steer'] === true
}

function sessionIdIn(params: unknown): { readonly sessionId: string } {
  const sessionId = isObject(params) ? params['sessionId'] : undefined
  if (typeof sessionId !== 'string') throw invalidParams('Expected `sessionId` to be a string.')
  return { sessionId }
}
