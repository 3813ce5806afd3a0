import type { ExtensionRun } from '#core/extension/extension.js'
import { isObject } from '#util/json.js'
import type { JsonObject } from '#util/json.js'
import { shownPath } from '../workspace/path-text.js'
import type { BackgroundCommand, BackgroundEnd } from './background.js'

/** The commands of one run in the background. */
export class RunCommands {
  readonly #commands = new Map<string, BackgroundCommand>()
  /** Commands that an earlier process ran. */
  readonly #lost = new Set<string>()
  #count = 0
  #run: ExtensionRun | null = null

  /** The run begins, or continues. */
  open(run: ExtensionRun): void {
    this.#run = run
    for (const value of run.recorded) {
      if (!isObject(value)) continue
      const { started, ended } = value
      if (typeof started === 'string') {
        this.#count = Math.max(this.#count, Number(started.slice(PREFIX.length)))
        if (!this.#commands.has(started)) this.#lost.add(started)
      }
      if (typeof ended === 'string') this.#lost.delete(ended)
    }
  }

  get running(): number {
    return [...this.#commands.values()].filter(({ end }) => end === null).length
  }

  nextId(): string {
    return `${PREFIX}${(this.#count += 1)}`
  }

  async record(value: JsonObject): Promise<void> {
    await this.#run?.record(value)
  }

  add(command: BackgroundCommand): void {
    this.#commands.set(command.id, command)
  }

  get(id: string): BackgroundCommand | undefined {
    return this.#commands.get(id)
  }

  /** Its end has been reported. */
  async forget(id: string): Promise<void> {
    if (this.#commands.delete(id)) await this.record({ ended: id })
  }

  missing(id: string): string {
    if (this.#lost.has(id)) return `${id} ended when the process that ran it ended. Its output is lost.`
    const known = [...this.#commands.keys()].join(', ') || 'none'
    return `There is no command ${shownPath(id)} in the background. Known: ${known}.`
  }

  /** For the model; empty if there is nothing to say. */
  notice(): string {
    const lines = [...this.#commands.values()].map((command) => {
      const unread = command.end !== null && command.hasUnread ? ' Its output has not been read.' : ''
      return `${command.id} ${stateOf(command.end)}${unread}`
    })
    const lost = [...this.#lost].map((id) => `${id} ended when the process that ran it ended.`)
    const all = [...lost, ...lines]
    return all.length === 0 ? '' : `Commands in the background:\n${all.join('\n')}`
  }

  async endAll(): Promise<void> {
    await Promise.all([...this.#commands.values()].map((command) => command.kill()))
  }
}

const PREFIX = 'bg_'

/** A sentence about a command, without its id. */
export function stateOf(end: BackgroundEnd | null): string {
  if (end === null) return 'is running.'
  if (end.stopped === 'aborted') return 'was ended.'
  if (end.stopped !== null) return 'was ended: it ran longer than an hour.'
  return end.exitCode === null
    ? `was ended by ${end.signal ?? 'a signal'}.`
    : `has ended with exit code ${end.exitCode}.`
}
