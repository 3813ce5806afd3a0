import { HarnessError } from '../../contracts/errors.js'
import { isObject } from '../../util/json.js'
import type { McpSdk } from '../client/connection.js'

/**
 * The SDK that is installed: `@modelcontextprotocol/client`, which speaks every revision of the protocol, else
 * `@modelcontextprotocol/sdk`, which speaks those up to 2025-11-25. Throws `missing_dependency` without either.
 */
export async function loadSdk(importers: SdkImporters = IMPORTERS): Promise<McpSdk> {
  for (const load of importers) {
    try {
      return await load()
    } catch (error) {
      if (!isMissing(error)) throw error
    }
  }
  throw new HarnessError(
    'missing_dependency',
    'MCP servers need `@modelcontextprotocol/client` (or `@modelcontextprotocol/sdk`), which is not installed. Run `npm install @modelcontextprotocol/client`.',
  )
}

type SdkImporters = readonly (() => Promise<McpSdk>)[]

const IMPORTERS: SdkImporters = [
  async () => (await import('./client-sdk.js')).loadClientSdk(),
  async () => (await import('./first-sdk.js')).loadFirstSdk(),
]

/** Whether an import failed because the package is not there, as opposed to being broken. */
export function isMissing(error: unknown): boolean {
  const code = isObject(error) ? error['code'] : undefined
  return code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND'
}
