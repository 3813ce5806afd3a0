import { Writable } from 'node:stream'

/** Standard output belongs to a protocol: other output, such as that of `console.log`, goes to standard error. */
export function takeOutput(): { readonly protocol: Writable; readonly giveBack: () => void } {
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
