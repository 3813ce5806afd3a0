import { closeSync, existsSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs'

/** What was done to the world: a file outside of every run, only ever appended to, one line for each effect. */
export class Counter {
  #path

  constructor(path) {
    this.#path = path
  }

  /** Resolves once the effect is on the disk; a process that is killed before has not had it. */
  add(toolName, key) {
    const file = openSync(this.#path, 'a')
    try {
      writeSync(file, `${JSON.stringify({ toolName, key })}\n`)
      fsyncSync(file)
    } finally {
      closeSync(file)
    }
  }

  has(key) {
    return this.read().some((effect) => effect.key === key)
  }

  read() {
    if (!existsSync(this.#path)) return []
    const lines = readFileSync(this.#path, 'utf8').split('\n')
    return lines.filter((line) => line !== '').map((line) => JSON.parse(line))
  }
}
