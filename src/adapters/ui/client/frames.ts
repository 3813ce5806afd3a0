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
  let rest = ''
  let frame = new Lines()
  try {
    for (;;) {
      const { value, done } = await reader.read()
      if (done) return
      rest += decoder.decode(value, { stream: true })
      // A line ends with LF, CR, or both: a CR at the end can be half of that.
      const lines = rest.split(/\r\n|\n|\r(?!$)/)
      rest = lines.pop() ?? ''
      for (const line of lines) {
        if (line !== '') frame.add(line)
        else {
          const complete = frame.complete()
          frame = new Lines()
          if (complete !== null) yield complete
        }
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined)
  }
}

class Lines {
  #event = 'message'
  #id: string | null = null
  readonly #data: string[] = []

  add(line: string): void {
    const colon = line.indexOf(':')
    const name = colon === -1 ? line : line.slice(0, colon)
    const value = colon === -1 ? '' : line.slice(colon + 1).replace(/^ /, '')
    if (name === 'event') this.#event = value
    else if (name === 'id') this.#id = value
    else if (name === 'data') this.#data.push(value)
  }

  complete(): Frame | null {
    return this.#data.length === 0 ? null : { event: this.#event, data: this.#data.join('\n'), id: this.#id }
  }
}
