/** One server-sent event. */
export interface Frame {
  readonly event: string
  readonly data: string
  readonly id: string | null
}

/** The server-sent events of a body, as the standard reads them: an event whose end is missing does not count. */
export async function* readFrames(body: ReadableStream<Uint8Array>): AsyncGenerator<Frame, void, undefined> {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  /** The pieces of a line that has not ended: they are joined once, however long it is. */
  let pieces = ['']
  let [event, id, data]: [string, string | null, string[]] = ['message', null, []]
  try {
    for (;;) {
      const { value, done } = await reader.read()
      if (done) return
      // A line ends with LF, CR, or both: a CR at the end can be half of that.
      const before = pieces.at(-1)?.slice(-1) ?? ''
      const piece = decoder.decode(value, { stream: true })
      pieces.push(piece)
      if (!/[\r\n]/.test(before + piece)) continue
      const lines = pieces.join('').split(/\r\n|\n|\r(?!$)/)
      pieces = lines.splice(-1)
      for (const line of lines) {
        const colon = `${line}:`.indexOf(':')
        const [name, content] = [line.slice(0, colon), line.slice(colon + 1).replace(/^ /, '')]
        if (name === 'event') event = content
        else if (name === 'id') id = content
        else if (name === 'data') data.push(content)
        if (line !== '') continue
        if (data.length > 0) yield { event, data: data.join('\n'), id }
        ;[event, id, data] = ['message', null, []]
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined)
  }
}
