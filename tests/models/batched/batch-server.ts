/** What becomes of a request: the text of its reply, or how it failed. */
export type Outcome =
  | { readonly text: string }
  | { readonly refused: { readonly status: number; readonly type: string; readonly message: string } }
  | { readonly end: 'expired' | 'canceled' | 'missing' }

interface Request {
  readonly id: string
  readonly body: Record<string, unknown>
}

interface Stored {
  readonly requests: readonly Request[]
  status: string
  /** The questions that are answered before it has ended. */
  left: number
  outcomes: readonly Outcome[]
}

const USAGE = { input_tokens: 1_000, output_tokens: 100, total_tokens: 1_100 }

/**
 * The batch APIs of OpenAI and Anthropic as their documentation describes them, in memory: `/v1/files`, `/v1/batches`,
 * `/v1/messages/batches`. Results come in the reverse order.
 */
export class BatchServer {
  readonly batches = new Map<string, Stored>()
  readonly cancelled: string[] = []
  /** When each question for a batch came. */
  readonly asked: number[] = []
  readonly headers: Headers[] = []
  /** What the next batches give, one list for each. */
  readonly outcomes: (readonly Outcome[])[] = []
  /** Questions that a new batch needs to end. */
  questions = 1
  /** Answers in place of those of the API. */
  failures: Response[] = []
  refusal: { readonly code: string; readonly message: string } | null = null
  readonly #files = new Map<string, string>()
  #count = 0

  readonly fetch = async (input: string | URL | globalThis.Request, init: RequestInit = {}): Promise<Response> => {
    const { pathname } = new URL(input instanceof globalThis.Request ? input.url : input)
    const failure = this.failures.shift()
    if (failure !== undefined) return failure
    this.headers.push(new Headers(init.headers))
    const body = init.body === undefined || init.body === null ? '' : await new Response(init.body).text()
    const [path, id = ''] = [pathname.replace(/(batch_|file_)\w+/, ':id'), /(?:batch_|file_)\w+/.exec(pathname)?.[0]]
    switch (`${init.method ?? 'GET'} ${path}`) {
      case 'POST /v1/files':
        return Response.json({ id: this.#store(body), object: 'file' })
      case 'GET /v1/files/:id/content':
        return new Response(this.#files.get(id))
      case 'POST /v1/batches':
        return Response.json(this.#openAi(this.#begin(this.#requestsOf(body))))
      case 'GET /v1/batches/:id':
        return this.#question(id, () => this.#openAi(id))
      case 'POST /v1/messages/batches': {
        const { requests } = JSON.parse(body) as { requests: { custom_id: string; params: Request['body'] }[] }
        return Response.json(
          this.#anthropic(this.#begin(requests.map((each) => ({ id: each.custom_id, body: each.params })))),
        )
      }
      case 'GET /v1/messages/batches/:id':
        return this.#question(id, () => this.#anthropic(id))
      case 'GET /v1/messages/batches/:id/results':
        return new Response(this.#messageResults(id))
      case 'POST /v1/batches/:id/cancel':
      case 'POST /v1/messages/batches/:id/cancel':
        this.cancelled.push(id)
        return Response.json({ id })
      default:
        return Response.json({ error: { message: `No ${path}` } }, { status: 404 })
    }
  }

  #store(form: string): string {
    const id = `file_${(this.#count += 1)}`
    this.#files.set(id, form)
    return id
  }

  #requestsOf(text: string): Request[] {
    const { input_file_id: file, endpoint } = JSON.parse(text) as { input_file_id: string; endpoint: string }
    const form = this.#files.get(file) ?? ''
    const lines = form
      .split('\r\n')
      .filter((line) => line.startsWith('{'))
      .join('\n')
      .trim()
      .split('\n')
    if (!form.includes('name="purpose"\r\n\r\nbatch\r\n')) throw new Error('Expected the purpose `batch`.')
    return lines.map((line) => {
      const read = JSON.parse(line) as { custom_id: string; url: string; method: string; body: Request['body'] }
      const { custom_id: id, url, method, body } = read
      if (url !== endpoint || method !== 'POST') throw new Error(`Expected POST ${endpoint}.`)
      return { id, body }
    })
  }

  #begin(requests: readonly Request[]): string {
    const id = `batch_${(this.#count += 1)}`
    const outcomes = this.outcomes.shift() ?? []
    this.batches.set(id, { requests, status: 'in_progress', left: this.questions, outcomes })
    return id
  }

  #question(id: string, answer: () => unknown): Response {
    this.asked.push(Date.now())
    const batch = this.batches.get(id)
    if (batch === undefined)
      return Response.json({ error: { message: 'No such batch', type: 'not_found_error' } }, { status: 404 })
    batch.left -= 1
    if (batch.left <= 0) batch.status = 'ended'
    return Response.json(answer())
  }

  #openAi(id: string): unknown {
    const batch = this.batches.get(id)
    if (batch?.status !== 'ended') return { id, object: 'batch', status: 'in_progress' }
    if (this.refusal !== null) return { id, status: 'failed', errors: { object: 'list', data: [this.refusal] } }
    const lines = this.#lines(batch)
    const [output, errors] = [lines.filter(({ isError }) => !isError), lines.filter(({ isError }) => isError)]
    const file = (all: typeof lines): string | null =>
      all.length === 0 ? null : this.#store(all.map(({ line }) => JSON.stringify(line)).join('\n'))
    return { id, object: 'batch', status: 'completed', output_file_id: file(output), error_file_id: file(errors) }
  }

  #lines({ requests, outcomes }: Stored): { readonly isError: boolean; readonly line: unknown }[] {
    return [...requests.entries()]
      .reverse()
      .flatMap(([index, { id, body }]): { readonly isError: boolean; readonly line: unknown }[] => {
        const outcome = outcomes[index] ?? { text: `Answer to ${promptIn(body)}` }
        if ('text' in outcome) {
          const response = { status_code: 200, request_id: 'req', body: replyTo(body, outcome.text) }
          return [{ isError: false, line: { id: 'x', custom_id: id, response, error: null } }]
        }
        if ('refused' in outcome) {
          const { status, ...error } = outcome.refused
          return [
            { isError: true, line: { custom_id: id, response: { status_code: status, body: { error } }, error: null } },
          ]
        }
        if (outcome.end === 'missing') return []
        const code = outcome.end === 'expired' ? 'batch_expired' : 'batch_cancelled'
        return [
          { isError: true, line: { custom_id: id, response: null, error: { code, message: 'It was not executed.' } } },
        ]
      })
  }

  #anthropic(id: string): unknown {
    return { id, type: 'message_batch', processing_status: this.batches.get(id)?.status ?? 'in_progress' }
  }

  #messageResults(id: string): string {
    const { requests = [], outcomes = [] } = this.batches.get(id) ?? {}
    const lines = [...requests.entries()].reverse().flatMap(([index, { id: custom_id, body }]): unknown[] => {
      const outcome = outcomes[index] ?? { text: `Answer to ${promptIn(body)}` }
      if ('text' in outcome) {
        const content = [{ type: 'text', text: outcome.text }]
        const said = {
          id: 'msg',
          type: 'message',
          role: 'assistant',
          model: body['model'],
          content,
          stop_reason: 'end_turn',
        }
        return [{ custom_id, result: { type: 'succeeded', message: { ...said, usage: USAGE } } }]
      }
      if ('refused' in outcome) {
        const { type, message } = outcome.refused
        return [{ custom_id, result: { type: 'errored', error: { type: 'error', error: { type, message } } } }]
      }
      return outcome.end === 'missing' ? [] : [{ custom_id, result: { type: outcome.end } }]
    })
    return lines.map((line) => JSON.stringify(line)).join('\n')
  }
}

function replyTo(body: Request['body'], text: string): unknown {
  if ('messages' in body) {
    const message = { role: 'assistant', content: text }
    const usage = { prompt_tokens: 1_000, completion_tokens: 100, total_tokens: 1_100 }
    return {
      id: 'c',
      object: 'chat.completion',
      model: body['model'],
      choices: [{ index: 0, message, finish_reason: 'stop' }],
      usage,
    }
  }
  const content = [{ type: 'output_text', text, annotations: [] }]
  const output = [{ type: 'message', id: 'm', role: 'assistant', status: 'completed', content }]
  return { id: 'resp', object: 'response', status: 'completed', model: body['model'], output, usage: USAGE }
}

function promptIn(body: Request['body']): string {
  return /Prompt \d+/.exec(JSON.stringify(body['messages'] ?? body['input']))?.[0] ?? 'nothing'
}
