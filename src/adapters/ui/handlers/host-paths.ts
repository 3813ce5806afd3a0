import type { LogStore } from '#core/log/log.js'
import { nodeModule } from '#util/platform/node.js'
import type { AnyRunEvent } from '../projection.js'

/** Roots, and runs whose root is known, that are kept: those of the last runs. */
const MOST = 100
/** Before a path: not the middle of a word, a link or another path, except of a `file:` link; `\n` is a line break in JSON. */
const BEFORE = String.raw`(?<=\\[nrtbf]|file:\/\/|^|[^\w.~%+/\\-])`
/** The end of the folder's own name, with what separates it from the next one. */
const AFTER = String.raw`(?:\/+|(?![\w-]|\.\w))`
const AFTER_ON_WINDOWS = String.raw`(?:(?:\\\\|\/)+|(?![\w-]|\.\w))`

/** The folders in which runs work, and those of the server: their paths do not leave it. */
export class HostPaths {
  readonly #roots = new Set<string>()
  readonly #runIds = new Set<string>()
  #pattern: RegExp | null = null

  constructor() {
    const os = nodeModule('node:os')
    for (const folder of [os?.homedir(), os?.tmpdir(), os === undefined ? undefined : process.cwd()])
      if (folder !== undefined) this.#add(folder)
  }

  /** Notes the folder of a run that is about to be read. */
  async learnRun(log: LogStore, runId: string): Promise<void> {
    if (this.#runIds.has(runId)) return
    for await (const event of log.read({ kind: 'run', id: runId })) {
      this.learn(event)
      addRecent(this.#runIds, runId)
      return
    }
  }

  /** Notes the folder of a run that begins. */
  learn(event: AnyRunEvent): void {
    if (event.kind === 'run_started') this.#add(event.root)
  }

  /** A text, such as JSON, in which paths below these folders are relative to them. */
  hide(text: string): string {
    let isClean = true
    for (const root of this.#roots) isClean &&= !text.includes(root)
    if (isClean) return text
    // The longest first: one folder can be in another.
    const names = [...this.#roots].sort((one, other) => other.length - one.length).map(patternOf)
    this.#pattern ??= new RegExp(`${BEFORE}(?:${names.join('|')})`, 'g')
    return text.replaceAll(this.#pattern, (found) => (/[\\/]$/.test(found) ? '' : '.'))
  }

  #add(folder: string): void {
    const name = folder.replace(/[\\/]+$/, '')
    if (name === '' || this.#roots.has(name)) return
    // As it stands in JSON, and in JSON that is a text in JSON.
    for (let form = name, before = ''; form !== before; form = JSON.stringify(form).slice(1, -1)) {
      addRecent(this.#roots, form)
      before = form
      if (form.length > 4 * name.length) break
    }
    this.#pattern = null
  }
}

function addRecent(names: Set<string>, name: string): void {
  names.add(name)
  const [oldest] = names
  if (names.size > MOST && oldest !== undefined) names.delete(oldest)
}

function patternOf(root: string): string {
  const name = root.replaceAll(/[\\^$.*+?()[\]{}|/-]/g, String.raw`\$&`)
  return `${name}${/^[A-Za-z]:/.test(root) ? AFTER_ON_WINDOWS : AFTER}`
}
