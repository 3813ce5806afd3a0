import type * as sdkModule from '@agentclientprotocol/sdk'
import { HarnessError } from '../index.js'
import { isMissing } from '../util/platform/own-package.js'

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
