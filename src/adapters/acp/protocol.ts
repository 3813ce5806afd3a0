import type * as sdkModule from '@agentclientprotocol/sdk'
import { HarnessError } from '#contracts/errors.js'
import { isMissing } from '#util/platform/packages.js'

/** An answer that is an error of the protocol (JSON-RPC 2.0). */
export class AcpFailure extends Error {
  override readonly name = 'AcpFailure'
  readonly code: number
  readonly data: unknown

  constructor(code: number, message: string, data?: unknown) {
    super(message)
    this.code = code
    this.data = data
  }
}

export function invalidRequest(message: string, data?: unknown): AcpFailure {
  return new AcpFailure(-32_600, message, data)
}

export function invalidParams(message: string, data?: unknown): AcpFailure {
  return new AcpFailure(-32_602, message, data)
}

export function internalError(message: string, data?: unknown): AcpFailure {
  return new AcpFailure(-32_603, message, data)
}

export type AcpSdk = typeof sdkModule

export async function acpSdk(): Promise<AcpSdk> {
  try {
    return await import('@agentclientprotocol/sdk')
  } catch (cause) {
    if (!isMissing(cause)) throw cause
    throw new HarnessError(
      'missing_dependency',
      '`serveAcp` needs `@agentclientprotocol/sdk`, which is not installed. Run `npm install @agentclientprotocol/sdk`.',
      { cause },
    )
  }
}
