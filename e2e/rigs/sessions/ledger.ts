import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import type { Sent } from 'thinharness/session'
import { SessionError } from 'thinharness/session'
import type { Random } from '../crash/random.js'
import { People } from '../sim/people.js'

/** What happened, to what; of a message that is sent, the thread. */
type Line = readonly [
  'sending' | 'stored' | 'refused' | 'returned' | 'again' | 'approved' | 'rejected' | 'opened' | 'thread' | 'problem',
  string,
  string?,
]

/** The people of a thread whose processes are killed: what they know is in a file outside the store. */
export class Ledger extends People {
  readonly threads: Set<string>
  /** How often a process had a thread open. */
  openings = 0
  readonly #path: string
  readonly #written = new Set<string>()

  constructor(path: string, random: Random, sessions: number) {
    super(random, () => undefined)
    this.threads = new Set(Array.from({ length: sessions }, (_, number) => rootThread(number)))
    this.#path = path
    const text = existsSync(path) ? readFileSync(path, 'utf8') : ''
    for (const line of text.split('\n')) if (line !== '') this.#read(JSON.parse(line) as Line)
  }

  override newId(threadId: string): string {
    const messageId = super.newId(threadId)
    this.#write(['sending', messageId, threadId])
    return messageId
  }

  override sending(messageId: string, processNumber: number, work: Promise<Sent>): Promise<void> {
    // A repeated id may be sent by this process although an earlier one was refused.
    this.#write(['sending', messageId])
    const noted = work.then(
      () => this.#write(['stored', messageId]),
      (error: unknown) => error instanceof SessionError && this.#write(['refused', messageId]),
    )
    return Promise.all([super.sending(messageId, processNumber, work), noted]).then(() => undefined)
  }

  override approve(key: string, isApproved: boolean): void {
    super.approve(key, isApproved)
    this.#write([isApproved ? 'approved' : 'rejected', key])
  }

  /** This process has opened a thread; all that it has opened end with it. */
  noteOpened(threadId: string): void {
    this.#once(['opened', threadId])
  }

  addThread(threadId: string): void {
    this.threads.add(threadId)
    this.#write(['thread', threadId])
  }

  /** Writes what the last action has changed. */
  save(): void {
    for (const messageId of this.returned) this.#once(['returned', messageId])
    for (const [key, times] of this.runAgain)
      for (let time = 1; time <= times; time++) this.#once(['again', key], `again ${key} ${time}`)
    for (const problem of this.problems) this.#once(['problem', problem])
  }

  #once(line: Line, id = line.join(' ')): void {
    if (this.#written.has(id)) return
    this.#written.add(id)
    this.#write(line)
  }

  #write(line: Line): void {
    appendFileSync(this.#path, `${JSON.stringify(line)}\n`)
  }

  #read([kind, value, threadId = 't']: Line): void {
    const fate = this.messages.get(value) ?? { threadId, isStored: false, unknown: 0 }
    switch (kind) {
      case 'sending':
        fate.unknown += 1
        this.messages.set(value, fate)
        break
      case 'stored':
        fate.isStored = true
        break
      case 'refused':
        fate.unknown -= 1
        break
      case 'returned':
        this.returned.add(value)
        this.#written.add(`returned ${value}`)
        break
      case 'again':
        this.runAgain.set(value, (this.runAgain.get(value) ?? 0) + 1)
        this.#written.add(`again ${value} ${this.runAgain.get(value)}`)
        break
      case 'approved':
      case 'rejected':
        this.approvals.set(value, kind === 'approved')
        break
      case 'opened':
        this.openings += 1
        break
      case 'thread':
        this.threads.add(value)
        break
      case 'problem':
        this.problems.push(value)
    }
  }
}

export function rootThread(number: number): string {
  return `t${number}`
}
