import type { McpServerFactory } from '@modelcontextprotocol/server'
import type * as stdioModule from '@modelcontextprotocol/server/stdio'
import { HarnessError } from '../../contracts/errors.js'
import { takeOutput } from '../../util/platform/standard-output.js'
import type { McpServing } from './serving.js'

/** Makes this process the server, until its client closes standard input. */
export async function serveOverStdio(factory: McpServerFactory, closing: AbortController): Promise<McpServing> {
  const { serveStdio, StdioServerTransport } = await stdioSdk()
  const { protocol, giveBack } = takeOutput()
  const handle = serveStdio(factory, { transport: new StdioServerTransport(process.stdin, protocol) })
  let isClosed = (): void => undefined
  const closed = new Promise<void>((resolve) => (isClosed = resolve))
  const close = async (): Promise<void> => {
    closing.abort(new HarnessError('closed', 'The server was closed.'))
    await handle.close()
    giveBack()
    isClosed()
  }
  const gone = (): void => void close()
  process.stdin.once('end', gone).once('close', gone)
  return { url: null, closed, close, [Symbol.asyncDispose]: close }
}

async function stdioSdk(): Promise<typeof stdioModule> {
  // Bundlers accept within `try` that the package is not installed; `serveMcp` has reported that already.
  try {
    return await import('@modelcontextprotocol/server/stdio')
  } catch (cause) {
    throw new HarnessError('missing_dependency', '`serveMcp` needs `@modelcontextprotocol/server/stdio`.', { cause })
  }
}
