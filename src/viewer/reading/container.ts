/**
 * The data of a page: `<script type="text/plain" id="logs">` holds base64 of deflate-raw of one line of JSON, the header, and then the
 * logs one after the other, byte for byte as the header counts them.
 */
export interface ContainerHeader {
  readonly format: 1
  /** Shown at the top, and in the title of the window. */
  readonly title: string
  /** In the order of their bytes. Runs at the top stand newest first; those of a thread oldest first; child runs after their parent. */
  readonly logs: readonly LogPart[]
  /** The run that is opened first; null: a list of runs is shown. */
  readonly root: string | null
  /** The thread whose runs are shown one after the other. */
  readonly threadId?: string
  /** The run that `root` is compared with. */
  readonly compare?: string
  /** Events were changed or left out before the page was written. */
  readonly redacted: boolean
  /** The page follows its runs; absent of a saved page. */
  readonly live?: LiveSource
}

/** The log of one run in a container. */
export interface LogPart {
  readonly runId: string
  readonly parentRunId?: string
  readonly threadId?: string
  /** The length of its events: one a line, each line ended by LF, as `export` of a store gives them. */
  readonly bytes: number
  /** Why the log ends before its end: the store could not read it. */
  readonly problem?: string
  /** What a list of runs shows without reading the log. */
  readonly summary?: PartSummary
}

/** A run in a list. */
export interface PartSummary {
  readonly status: string
  /** ISO 8601 in UTC. */
  readonly startedAt: string
  readonly endedAt: string | null
  /** `provider:model`; empty if it is not known. */
  readonly model: string
  /** The beginning of the prompt, in one line. */
  readonly prompt: string
  readonly turns: number
  readonly calls: number
  /** US dollars; null if unknown. */
  readonly costUsd: number | null
}

/** Where a live page gets what comes next. */
export interface LiveSource {
  /**
   * Address of the page's own server, ended by `/`: `${url}runs/${id}/events?children=1` is the stream of native events, and with
   * `approvals` `POST ${url}runs/${id}/answers` takes `{ answers }`.
   */
  readonly url: string
  /** People may answer on the page. */
  readonly approvals: boolean
}

/** A log as a container holds it. */
export interface PackedLog {
  readonly part: LogPart
  readonly bytes: Uint8Array
}

export interface Container {
  readonly header: ContainerHeader
  readonly logs: readonly PackedLog[]
}

/**
 * The text for a page: base64, which needs no escaping in HTML.
 *
 * @example
 * const data = await packContainer({ format: 1, title: 'Run', root: 'run_1', redacted: false, logs: [part] }, [bytes])
 */
export async function packContainer(header: ContainerHeader, logs: readonly Uint8Array[]): Promise<string> {
  const first = new TextEncoder().encode(`${JSON.stringify(header)}\n`)
  const packed = await through(joined([first, ...logs]), new CompressionStream('deflate-raw'))
  return base64Of(packed)
}

/**
 * The logs in the text of a page. Throws a `RangeError` for a text that is not one, or is cut.
 *
 * @example
 * const { header, logs } = await readContainer(document.getElementById('logs').textContent)
 */
export async function readContainer(text: string): Promise<Container> {
  const bytes = await through(bytesOf(text.trim()), new DecompressionStream('deflate-raw'))
  const end = bytes.indexOf(0x0a)
  if (end < 0) throw new RangeError('Expected the data of the page to begin with a line of JSON.')
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(0, end))) as ContainerHeader
  let at = end + 1
  const logs = header.logs.map((part): PackedLog => {
    const from = at
    at += part.bytes
    return { part, bytes: bytes.subarray(from, at) }
  })
  if (at > bytes.length)
    throw new RangeError(`The data of the page ends after ${bytes.length} bytes; its header counts ${at}.`)
  return { header, logs }
}

function joined(pieces: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const piece of pieces) {
    whole.set(piece, at)
    at += piece.length
  }
  return whole
}

async function through(
  bytes: Uint8Array<ArrayBuffer>,
  stream: CompressionStream | DecompressionStream,
): Promise<Uint8Array<ArrayBuffer>> {
  const body = new Response(bytes).body
  if (body === null) return bytes
  return new Uint8Array(await new Response(body.pipeThrough(stream)).arrayBuffer())
}

/** Characters at once: a call takes only so many arguments. */
const PIECE = 0x8000

function base64Of(bytes: Uint8Array): string {
  const pieces: string[] = []
  for (let at = 0; at < bytes.length; at += PIECE) pieces.push(String.fromCharCode(...bytes.subarray(at, at + PIECE)))
  return btoa(pieces.join(''))
}

function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  const text = atob(base64)
  const bytes = new Uint8Array(text.length)
  for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at)
  return bytes
}
