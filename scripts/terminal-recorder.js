// Types into a shell in tmux, and records its screen.
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'

export const [COLUMNS, ROWS] = [80, 24]
/** How often the screen is read, in ms, and the longest time for which nothing changes in the picture. */
const [EVERY_MS, LONGEST_MS] = [40, 700]
const UNTIL_MS = 60_000

/** A shell in tmux, whose screen is read again and again. */
export class Terminal {
  #socket = `thinharness-pictures-${process.pid}`
  #frames = []
  #holds
  #home
  #timer

  constructor(home, holds) {
    this.#holds = holds
    this.#home = home
    const environment = {
      ...{ HOME: home, TERM: 'xterm-256color', LANG: 'C.UTF-8', PS1: '\\w $ ', HISTCONTROL: 'ignorespace' },
      PATH: `${join(home, '.bin')}:${process.env['PATH']}`,
    }
    const shell = ['env', '-i', ...Object.entries(environment).map(([name, value]) => `${name}=${value}`)]
    this.#tmux([
      '-u',
      'new-session',
      '-d',
      '-x',
      `${COLUMNS}`,
      '-y',
      `${ROWS}`,
      '-c',
      home,
      ...shell,
      'bash',
      '--norc',
      '--noprofile',
    ])
    this.#tmux(['set', '-g', 'status', 'off'])
  }

  #tmux(args) {
    return execFileSync('tmux', ['-L', this.#socket, '-f', '/dev/null', ...args], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    })
  }

  /** From now on the screen is recorded. */
  begin() {
    this.#timer = setInterval(() => this.#look(), EVERY_MS)
  }

  #look() {
    // The home of the recording is that of anybody.
    const screen = this.#tmux(['capture-pane', '-e', '-p']).replaceAll(this.#home, '~')
    const [now, last] = [performance.now(), this.#frames.at(-1)]
    if (last?.screen === screen) return
    const hold = this.#holds.find(([seen]) => seen.test(screen))
    if (hold !== undefined) this.#holds = this.#holds.filter((each) => each !== hold)
    this.#frames.push({ screen, at: now, hold: hold?.[1] ?? 0 })
  }

  end() {
    clearInterval(this.#timer)
    this.#look()
    return this.#frames.map(({ screen, at, hold }, index) => {
      const next = this.#frames[index + 1]?.at ?? at
      return {
        lines: screen.split('\n').slice(0, ROWS),
        ms: Math.min(LONGEST_MS, Math.max(EVERY_MS, next - at)) + hold,
      }
    })
  }

  /** A program that runs is ended first, so that it writes nothing any more. */
  async close() {
    clearInterval(this.#timer)
    for (const key of ['C-c', 'C-d', 'C-c', 'C-d']) {
      this.press(key)
      await wait(250)
      if (!this.#isOpen()) return
    }
    this.#tmux(['kill-server'])
    await wait(500)
  }

  #isOpen() {
    try {
      return this.#tmux(['list-sessions']) !== ''
    } catch {
      return false
    }
  }

  get text() {
    return this.#tmux(['capture-pane', '-p'])
  }

  send(text) {
    this.#tmux(['send-keys', '-l', '--', text])
  }

  press(key) {
    this.#tmux(['send-keys', key])
  }

  /** As a person types: a few letters at a time. */
  async type(text) {
    for (const piece of text.match(/.{1,3}/gs) ?? []) {
      this.send(piece)
      await wait(60)
    }
    await this.hold(250)
  }

  /** The picture stays as it is for so long. */
  async hold(ms) {
    await this.settled()
    this.#look()
    const last = this.#frames.at(-1)
    if (last !== undefined) last.hold += ms
  }

  async until(pattern) {
    const end = performance.now() + UNTIL_MS
    while (!pattern.test(this.text)) {
      if (performance.now() > end) throw new Error(`Expected ${pattern} on the screen, got:\n${this.text}`)
      await wait(EVERY_MS)
    }
  }

  /** Nothing has changed for a moment. */
  async settled() {
    for (let [before, now] = [null, this.text]; before !== now; now = this.text) {
      before = now
      await wait(150)
    }
  }

  async prompt(ms = 0) {
    await this.until(/^~\S* \$ *\n*$/m)
    if (this.#timer !== undefined) await this.hold(ms)
  }

  async command(text, ms = 1000) {
    await this.type(text)
    this.press('Enter')
    await this.settled()
    await this.until(new RegExp(`\\n~\\S* \\$ *\\n*$`))
    await this.hold(ms)
  }

  /** Allows a call that waits. */
  async allow() {
    await this.type('y')
    this.press('Enter')
    await this.settled()
  }
}

function wait(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
