import { closeSync, existsSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs'

/** An effect of a tool call. */
export interface Effect {
  readonly toolName: string
  /** The idempotency key of the call. */
  readonly key: string
}

/** The effects on the world: a file outside every run to which each effect is appended as a line. */
export class Counter {
  readonly #path: string

  constructor(path: string) {
    this.#path = path
  }

  /** Returns once the effect is on the disk; a process that is killed before that had no effect. */
  add(effect: Effect): void {
    const file = openSync(this.#path, 'a')
    try {
      writeSync(file, `${JSON.stringify(effect)}\n`)
      fsyncSync(file)
    } finally {
      closeSync(file)
    }
  }

  has(key: string): boolean {
    return this.read().some((effect) => effect.key === key)
  }

  read(): readonly Effect[] {
    if (!existsSync(this.#path)) return []
    const lines = readFileSync(this.#path, 'utf8').split('\n')
    return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as Effect)
  }
}
