import { Writable } from 'node:stream'
import type { McpServerFactory } from '@modelcontextprotocol/server'
import type * as stdioModule from '@modelcontextprotocol/server/stdio'
import { HarnessError } from '../../contracts/errors.js'
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

/** Standard output belongs to the protocol: other output, such as that of `console.log`, goes to standard error. */
function takeOutput(): { readonly protocol: Writable; readonly giveBack: () => void } {
  const { stdout, stderr } = process
  const write = stdout.write.bind(stdout)
  const protocol = new Writable({
    write: (chunk: Uint8Array, _encoding, done) => void write(chunk, undefined, done),
  })
  stdout.write = stderr.write.bind(stderr)
  // A failed write shows that the client is gone.
  const ignored = (): void => undefined
  stdout.on('error', ignored)
  const giveBack = (): void => {
    stdout.write = write
    stdout.off('error', ignored)
  }
  return { protocol, giveBack }
}
