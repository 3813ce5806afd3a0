import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import type { InboxItem, ThreadItem } from 'thinharness/session'
import { afterAll, expect, test } from 'vitest'
import { temporaryFolder } from '../tests/support/folder.js'

const started: ChildProcess[] = []
afterAll(() => started.filter(({ exitCode }) => exitCode === null).forEach((child) => child.kill('SIGKILL')))

const ADA = 'ada-7d1f'
const BEN = 'ben-93c2'
const SAM = 'sam-e05b'
const SIGNALS = ['SIGTERM', 'SIGKILL'] as const
const TIMEOUT_MS = 90_000

interface Answer {
  readonly status: number
  readonly body: Readonly<Record<string, unknown>>
}

/** The desk in a folder; its process can be stopped and started again. */
class Desk {
  readonly #folder = temporaryFolder()
  #child: ChildProcess | null = null
  #origin = ''

  get origin(): string {
    return this.#origin
  }

  async start(): Promise<void> {
    const env = { PATH: process.env['PATH'] ?? '', HOME: this.#folder, EXAMPLE_FOLDER: this.#folder, PORT: '0' }
    const child = spawn(process.execPath, ['.build/examples/run.js', 'support-desk'], { env })
    started.push(child)
    this.#child = child
    let errors = ''
    child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()))
    this.#origin = await new Promise((resolve, reject) => {
      createInterface(child.stdout).on('line', (line) => {
        const [, origin] = /^staff Sam: (http:\/\/[\d.:]+)\//.exec(line) ?? []
        if (origin !== undefined) resolve(origin)
      })
      child.once('close', () => reject(new Error(`The desk ended: ${errors}`)))
    })
  }

  async stop(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child
    if (child === null) throw new Error('The desk has not been started.')
    const ended = once(child, 'close')
    child.kill(signal)
    await ended
    expect(child.exitCode).toBe(signal === 'SIGTERM' ? 0 : null)
  }

  async ask(token: string, path: string, body?: object): Promise<Answer> {
    const response = await this.open(token, path, body)
    return { status: response.status, body: (await response.json()) as Answer['body'] }
  }

  open(token: string, path: string, body?: object): Promise<Response> {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const sent = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
    return fetch(`${this.#origin}${path}`, { headers, ...sent })
  }

  /** A message of Ada in a conversation. */
  async write(threadId: string, text: string): Promise<void> {
    const { status } = await this.ask(ADA, `/api/threads/${threadId}/messages`, { text, messageId: `m-${text}` })
    expect(status).toBe(202)
  }

  async inbox(query = ''): Promise<readonly InboxItem[]> {
    return (await this.ask(SAM, `/staff/api/inbox${query}`)).body['items'] as readonly InboxItem[]
  }

  /** The item that waits in a conversation, once it does. */
  async waiting(threadId: string): Promise<InboxItem> {
    for (;;) {
      const found = (await this.inbox()).find((item) => item.threadId === threadId)
      if (found !== undefined) return found
      await delay(20)
    }
  }

  async answer({ threadId, item }: InboxItem, given: object): Promise<Answer> {
    return this.ask(SAM, `/staff/api/threads/${threadId}/answers`, { answers: [{ callId: item.callId, ...given }] })
  }

  /** What was said in a conversation, by lines, once it is idle and the last line has this text. */
  async said(threadId: string, last: string): Promise<readonly string[]> {
    for (;;) {
      await delay(20)
      const { threads } = (await this.ask(ADA, '/api/threads')).body as { threads: ThreadItem[] }
      if (threads.find((thread) => thread.threadId === threadId)?.phase !== 'idle') continue
      const messages = await (await this.open(ADA, `/api/threads/${threadId}/messages?format=ui`)).json()
      const lines = (messages as Message[]).map(({ role, parts }) => {
        const texts = parts.flatMap(({ type, text = '' }) => (type === 'text' ? [text] : []))
        return `${role}: ${texts.join('|')}`
      })
      if (lines.at(-1)?.includes(last) === true) return lines
    }
  }

  /** How the runs of a conversation began and continued. */
  async stretches(threadId: string): Promise<readonly string[]> {
    const events = await (await this.open(ADA, `/api/threads/${threadId}/messages`)).json()
    return (events as { kind: string; begun: string }[]).flatMap(({ kind, begun }) =>
      kind === 'run_started' ? [begun] : [],
    )
  }

  /** The refunds that the payment provider has made. */
  get refunds(): readonly { readonly orderId: string; readonly cents: number }[] {
    const path = join(this.#folder, 'refunds.jsonl')
    const lines = existsSync(path) ? readFileSync(path, 'utf8').trimEnd().split('\n') : []
    return lines.map((line) => {
      const { orderId, cents } = JSON.parse(line) as { orderId: string; cents: number }
      return { orderId, cents }
    })
  }
}

interface Message {
  readonly role: string
  readonly parts: readonly { readonly type: string; readonly text?: string }[]
}

async function desk(): Promise<Desk> {
  const made = new Desk()
  await made.start()
  return made
}

test.each(SIGNALS)(
  'support-desk: an approval waits for the staff across %s; approved with other arguments, the refund is made once',
  async (signal) => {
    const shop = await desk()
    await shop.write('t1', 'Order 1042 arrived broken. Please refund it.')
    const asked = await shop.waiting('t1')
    expect(asked).toMatchObject({ resourceId: 'ada', firstMessage: 'Order 1042 arrived broken. Please refund it.' })
    expect(JSON.parse(asked.item.arguments)).toMatchObject({ orderId: '1042', cents: 6450 })
    await shop.stop(signal)

    await shop.start()
    expect(await shop.inbox()).toEqual([asked])
    expect(shop.refunds).toEqual([])
    const editedArguments = { orderId: '1042', cents: 3000, reason: 'Three of six cups.' }
    expect(await shop.answer(asked, { approved: true, editedArguments })).toMatchObject({ status: 202 })
    // The same answer again, as after a lost response.
    expect(await shop.answer(asked, { approved: true, editedArguments })).toMatchObject({ status: 202 })
    // Another answer is too late.
    expect(await shop.answer(asked, { approved: false })).toMatchObject({ status: 409 })

    expect(await shop.said('t1', 'Refunded')).toEqual([
      'user: Order 1042 arrived broken. Please refund it.',
      expect.stringMatching(
        /^assistant: One moment\.\|One moment\.\|The staff have decided\. .*Refunded 30\.00 euros of order 1042\.$/s,
      ),
    ])
    expect(shop.refunds).toEqual([{ orderId: '1042', cents: 3000 }])
    expect(await shop.inbox('?answered')).toMatchObject([{ answered: { by: 'Sam', answer: { approved: true } } }])
    await shop.stop('SIGTERM')
  },
  TIMEOUT_MS,
)

test.each(SIGNALS)(
  'support-desk: %s in the middle of a refund; the next process continues, and the refund is made once',
  async (signal) => {
    const shop = await desk()
    await shop.write('t1', 'Order 1042 arrived broken. Please refund it.')
    await shop.answer(await shop.waiting('t1'), { approved: true })
    // The money has moved, and the call has not ended yet.
    while (shop.refunds.length === 0) await delay(2)
    await shop.stop(signal)

    await shop.start()
    await shop.said('t1', 'Refunded 64.50 euros of order 1042.')
    expect(shop.refunds).toEqual([{ orderId: '1042', cents: 6450 }])
    await shop.stop('SIGTERM')
  },
  TIMEOUT_MS,
)

test.each(SIGNALS)(
  'support-desk: %s in the middle of an answer; the next process answers, and then the message that waited',
  async (signal) => {
    const shop = await desk()
    await shop.write('t1', 'How do returns work?')
    await untilDelta(await shop.open(ADA, '/api/threads/t1/events'))
    await shop.write('t1', 'What is in order 1042?')
    await shop.stop(signal)

    await shop.start()
    expect(await shop.said('t1', 'About order 1042')).toEqual([
      'user: How do returns work?',
      expect.stringMatching(/^assistant: (?!.*\|)Returns are easy\..*decide the same day\.$/s),
      'user: What is in order 1042?',
      'assistant: One moment.|About order 1042: {"items":"6 cups, blue","cents":6450,"refundedCents":0}',
    ])
    expect(await shop.stretches('t1')).toEqual(['fresh', 'recovered', 'fresh'])
    await shop.stop('SIGTERM')
  },
  TIMEOUT_MS,
)

test(
  'support-desk: small refunds need no person, until they add up; the staff refuse with a reason, or allow the rest of a conversation',
  async () => {
    const shop = await desk()
    await shop.write('small', 'Please refund 600 cents of order 1042.')
    await shop.said('small', 'Refunded 6.00 euros')
    expect(await shop.inbox()).toEqual([])

    await shop.write('small', 'Please refund another 600 cents of order 1042.')
    await shop.answer(await shop.waiting('small'), { approved: false, reason: 'Twice is enough.' })
    await shop.said('small', 'Twice is enough.')
    expect(shop.refunds).toEqual([{ orderId: '1042', cents: 600 }])

    const remember = { decision: 'allow', tool: 'refund', args: { orderId: '1042' } }
    await shop.write('large', 'Please refund 2000 cents of order 1042.')
    await shop.answer(await shop.waiting('large'), { approved: true, remember })
    await shop.said('large', 'Refunded 20.00 euros')
    await shop.write('large', 'Please refund 1500 cents of order 1042.')
    await shop.said('large', 'Refunded 15.00 euros')
    // Not more than the order cost, whoever approves.
    await shop.write('large', 'Please refund 5000 cents of order 1042.')
    await shop.said('large', 'Only 2350 cents of order 1042 can be refunded.')
    expect(shop.refunds.map(({ cents }) => cents)).toEqual([600, 2000, 1500])
    expect((await shop.inbox('?answered')).map(({ answered }) => answered?.by)).toEqual(['Sam', 'Sam', 'responder'])
    await shop.stop('SIGTERM')
  },
  TIMEOUT_MS,
)

test(
  'support-desk: customers reach their own conversations and orders only, and answer no approvals',
  async () => {
    const shop = await desk()
    await shop.write('t1', 'Please refund order 1042.')
    const { item, threadId } = await shop.waiting('t1')
    const answers = { answers: [{ callId: item.callId, approved: true }] }
    expect(await shop.ask(ADA, `/api/threads/${threadId}/answers`, answers)).toMatchObject({ status: 403 })
    expect(await shop.ask(ADA, `/staff/api/threads/${threadId}/answers`, answers)).toMatchObject({ status: 401 })
    expect(await shop.ask('nobody', `/api/threads/${threadId}/messages`)).toMatchObject({ status: 401 })
    expect(await shop.ask(BEN, `/api/threads/${threadId}/messages`)).toMatchObject({ status: 404 })
    expect(await shop.ask(BEN, '/api/threads')).toMatchObject({ body: { threads: [] } })
    expect(await shop.ask(ADA, '/staff/api/inbox')).toMatchObject({ status: 401 })
    expect(await shop.ask(SAM, '/staff/api/inbox?before=nonsense')).toMatchObject({ status: 400 })
    // The staff read, and do not write in a customer's name.
    const text = 'Hello?'
    expect((await shop.open(SAM, `/staff/api/threads/${threadId}/messages`, { text })).status).toBe(404)
    expect((await shop.open(SAM, `/staff/api/threads/${threadId}/messages`)).status).toBe(200)

    await shop.write('t2', 'What is in order 2001?')
    await shop.said('t2', 'The customer has no order 2001.')
    expect(shop.refunds).toEqual([])
    await shop.stop('SIGTERM')
  },
  TIMEOUT_MS,
)

test(
  'support-desk: the links sign in, and the pages are served with their scripts',
  async () => {
    const shop = await desk()
    const signedIn = await fetch(`${shop.origin}/staff/?token=${SAM}`, { redirect: 'manual' })
    expect([signedIn.status, signedIn.headers.get('location')]).toEqual([303, '/staff/'])
    const cookie = signedIn.headers.get('set-cookie')?.split(';', 1)[0] ?? ''
    const inbox = await fetch(`${shop.origin}/staff/api/inbox`, { headers: { cookie } })
    expect(await inbox.json()).toEqual({ items: [] })
    for (const [path, type] of Object.entries({ '/': 'html', '/staff/': 'html', '/customer.js': 'javascript' })) {
      const page = await fetch(`${shop.origin}${path}`)
      expect([path, page.status, page.headers.get('content-type')]).toEqual([path, 200, `text/${type}; charset=utf-8`])
    }
    await shop.stop('SIGTERM')
  },
  TIMEOUT_MS,
)

/** Reads events until some of the reply has arrived. */
async function untilDelta({ body }: Response): Promise<void> {
  let read = ''
  const decoder = new TextDecoder()
  for await (const chunk of body as AsyncIterable<Uint8Array>) {
    read += decoder.decode(chunk, { stream: true })
    if (read.includes('event: text_delta')) return
  }
  throw new Error('The events ended without a reply.')
}
