import { Sessions } from '#session/index.js'
import type { Chat, Modes } from '#session/index.js'
import type { StreamEvent } from '../index.js'
import { messageOf } from './follow-to-end.js'
import { EXIT } from './exit-codes.js'
import { askPeople } from './terminal/people.js'
import { RunTree } from './terminal/run-tree.js'
import { openModes, openSetup } from './setup.js'
import type { RunFlags } from './setup.js'
import { openRuns } from './stored-runs.js'
import { oneLine, visible } from './terminal/terminal.js'
import type { Terminal } from './terminal/terminal.js'
import { TypedLines } from './terminal/typed-lines.js'

export interface ChatFlags extends RunFlags {
  readonly thread?: string
}

const HELP = [
  'While it works, a line that you type steers it at its next turn.',
  '/queue TEXT  a message for when it is done',
  '/stop        stops what it does',
  '/mode NAME   another mode, of the export modes of the config file',
  '/model NAME  another model',
  '/exit        ends; thinharness chat --thread ID goes on',
]

/** `chat`: a conversation in the terminal. Lines of a pipe are its messages, one after the other. */
export async function chat(flags: ChatFlags, terminal: Terminal): Promise<number> {
  const log = await openRuns(flags.runs)
  const setup = await openSetup(flags, log)
  const modes = await openModes(flags, setup)
  await setup.harness.connect()
  const sessions = new Sessions<Modes>({ log, modes })
  const conversation = await sessions.open(flags.thread)
  const talk = new Talk(conversation, { terminal, modes: sessions.modes })
  try {
    return await talk.run()
  } finally {
    terminal.say(conversation.threadId)
    await sessions.close()
    for (const mode of new Set([setup.harness, ...Object.values(modes)])) await mode.close()
    await log.close?.()
  }
}

interface TalkPlace {
  readonly terminal: Terminal
  readonly modes: readonly string[]
}

/** The loop of a conversation: what is typed goes to it, and what it waits for is asked. */
class Talk {
  readonly #chat: Chat
  readonly #modes: readonly string[]
  readonly #terminal: Terminal
  readonly #tree: RunTree
  readonly #lines: TypedLines
  readonly #reading = new AbortController()
  #exitCode: number = EXIT.done

  constructor(chat: Chat, { terminal, modes }: TalkPlace) {
    this.#chat = chat
    this.#modes = modes
    this.#terminal = terminal
    this.#tree = new RunTree(terminal)
    this.#lines = new TypedLines(terminal.stdin)
  }

  async run(): Promise<number> {
    const following = this.#follow()
    const interrupt = (): void => void this.#chat.cancel()
    process.on('SIGINT', interrupt)
    try {
      await this.#settle()
      this.#prompt()
      for (let line = await this.#lines.next(); line !== null; line = await this.#lines.next()) {
        if (line.trim() === '/exit') break
        // A person goes on typing; a pipe waits for each answer.
        const taken = this.#take(line.trim())
        if (this.#terminal.canAsk) taken.catch((error: unknown) => this.#tree.say(visible(messageOf(error))))
        else await taken
      }
      await this.#chat.whenIdle()
      return this.#exitCode
    } finally {
      process.off('SIGINT', interrupt)
      this.#lines.release()
      this.#reading.abort()
      await following
      this.#tree.end()
    }
  }

  async #take(line: string): Promise<void> {
    const [, word, rest = ''] = /^\/(\w+)\s*(.*)$/s.exec(line) ?? []
    if (word === undefined && line !== '') {
      await this.#say(line)
      return
    }
    if (word === 'help') for (const each of HELP) this.#tree.say(each)
    else if (word === 'stop') await this.#chat.cancel()
    else if (word === 'queue') await this.#chat.send(rest)
    else if (word === 'mode') await this.#setMode(rest)
    else if (word === 'model') await this.#chat.setModel(rest)
    else if (word !== undefined) this.#tree.say(`There is no /${word}: /help shows what there is.`)
    this.#prompt()
  }

  async #setMode(name: string): Promise<void> {
    if (name !== '') await this.#chat.setMode(name)
    const { mode } = this.#chat.snapshot.thread
    this.#tree.say(`Mode ${mode}, of ${this.#modes.join(', ')}.`)
  }

  /** A message begins a run; one to a run in progress steers it. */
  async #say(line: string): Promise<void> {
    if (this.#chat.phase === 'running') {
      await this.#chat.steer(line)
      this.#tree.say(`› queued for the next turn: ${oneLine(line)}`)
      return
    }
    const { done } = await this.#chat.send(line)
    const { status, error } = await done
    if (status === 'failed') this.#exitCode = EXIT.failed
    if (error !== undefined) this.#tree.say(this.#terminal.paint('red', visible(error.message)))
    await this.#settle()
    this.#prompt()
  }

  /** Asks what the conversation waits for, until it waits for nothing. */
  async #settle(): Promise<void> {
    while (this.#chat.pending.length > 0) {
      if (!this.#terminal.canAsk) {
        this.#exitCode = EXIT.waits
        return
      }
      this.#tree.end()
      this.#lines.release()
      const answers = await askPeople(this.#chat.pending, this.#terminal)
      this.#lines.open()
      if (answers === null) return
      await this.#chat.answer(answers)
      await this.#chat.whenIdle()
    }
  }

  /** Shows what happens, and each answer when it is complete. */
  async #follow(): Promise<void> {
    const { signal } = this.#reading
    let text = ''
    for await (const event of this.#chat.events({ after: 'end', children: true, signal })) {
      if (!('durable' in event) || !('parentRunId' in event)) continue
      this.#tree.add(event as unknown as StreamEvent)
      if (event.parentRunId !== null) continue
      if (event.kind === 'model_message')
        text = event.entry.parts.map((part) => (part.type === 'text' ? part.text : '')).join('')
      if (event.kind !== 'run_completed' || event.pending.length > 0) continue
      this.#tree.end()
      this.#terminal.out(`${text}\n`)
    }
  }

  #prompt(): void {
    if (this.#terminal.canAsk) this.#terminal.draw(this.#terminal.paint('cyan', '› '))
  }
}
