import type { Client, RequestOptions as SdkRequestOptions, Transport } from '@modelcontextprotocol/client'
import { ownVersion } from '#util/platform/own-package.js'
import type { ConnectionSetup, McpRequestOptions } from './connection.js'

/** Name and version that servers and clients are given. */
export const CLIENT_INFO = { name: 'thinharness', version: ownVersion() }

/** The requests that a server may send to us. */
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

type Empty = Record<string, never>

/** Options of a request, in the SDK's form. */
export function requestOptions({ signal, timeoutMs, onProgress }: McpRequestOptions): SdkRequestOptions {
  return {
    timeout: timeoutMs,
    resetTimeoutOnProgress: true,
    ...(signal !== undefined && { signal }),
    ...(onProgress !== undefined && { onprogress: onProgress }),
  }
}

/**
 * Connects a client in at most `connectMs`, whatever the SDK waits for. A failure while connecting is thrown, and nothing
 * stays open; a later one is reported to `onProblem`.
 */
export async function connectClient(
  client: Client,
  transport: Transport,
  { connectMs, onClosed, onStderr, onProblem }: ConnectionSetup,
): Promise<void> {
  transportStderr(transport)?.on('data', (piece: Buffer) => onStderr(piece.toString()))
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

function transportStderr(transport: Transport): NodeJS.ReadableStream | null {
  return 'stderr' in transport ? (transport.stderr as NodeJS.ReadableStream | null) : null
}
