import { createRequire } from 'node:module'
import type { Stream } from 'node:stream'
import type { JsonObject } from '../../util/json.js'
import type { ConnectionSetup, RequestOptions } from '../client/connection.js'

/** Who we say that we are. */
export const CLIENT_INFO = { name: 'thinharness', version: ownVersion() }

/** What a server is told that it may ask of us. */
export function clientCapabilities({ elicit, sample, roots }: ConnectionSetup['asks']): {
  elicitation?: { form: { applyDefaults: true }; url: Empty }
  sampling?: Empty
  roots?: Empty
} {
  return {
    ...(elicit !== null && { elicitation: { form: { applyDefaults: true as const }, url: {} } }),
    ...(sample !== null && { sampling: {} }),
    ...(roots !== null && { roots: {} }),
  }
}

/** The server's name of a tool that it has listed. */
export function nameOf({ name }: JsonObject): string {
  return typeof name === 'string' ? name : ''
}

type Empty = Record<string, never>

/** Options of a request, as both SDKs take them. */
export function sdkOptions({ signal, timeoutMs, onProgress }: RequestOptions): SdkRequestOptions {
  return {
    timeout: timeoutMs,
    resetTimeoutOnProgress: true,
    ...(signal !== undefined && { signal }),
    ...(onProgress !== undefined && { onprogress: onProgress }),
  }
}

/**
 * Connects an SDK's client. What goes wrong later is told; what goes wrong now is thrown, and nothing is left open.
 * Takes at most `connectMs`, whatever the SDK waits for.
 */
export async function connected<Transport extends SdkTransport>(
  client: SdkClient<Transport>,
  transport: Transport,
  { connectMs, onClosed, onStderr, onProblem }: ConnectionSetup,
): Promise<void> {
  transport.stderr?.on('data', (piece: Buffer) => onStderr(piece.toString()))
  client.onerror = (error) => onProblem(error.message)
  const limit = new AbortController()
  const late = new Promise<never>((_, reject) => {
    limit.signal.addEventListener('abort', () => reject(new Error(`It was not ready after ${connectMs} ms.`)))
  })
  const timer = setTimeout(() => limit.abort(), connectMs)
  try {
    await Promise.race([client.connect(transport, { timeout: connectMs, signal: limit.signal }), late])
    client.onclose = onClosed
  } catch (error) {
    await Promise.allSettled([client.close(), transport.close()])
    throw error
  } finally {
    clearTimeout(timer)
  }
}

interface SdkRequestOptions {
  readonly timeout: number
  readonly resetTimeoutOnProgress: boolean
  readonly signal?: AbortSignal
  readonly onprogress?: NonNullable<RequestOptions['onProgress']>
}

interface SdkTransport {
  readonly stderr?: Stream | null
  close(): Promise<void>
}

interface SdkClient<Transport> {
  onclose?: (() => void) | undefined
  onerror?: ((error: Error) => void) | undefined
  connect(transport: Transport, options: { readonly timeout: number; readonly signal: AbortSignal }): Promise<void>
  close(): Promise<void>
}

function ownVersion(): string {
  try {
    const { version } = createRequire(import.meta.url)('thinharness/package.json') as { readonly version: string }
    return version
  } catch {
    // Bundled into something else: there is no package to ask.
    return '0.0.0'
  }
}
