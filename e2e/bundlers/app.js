import { execFileSync, spawn } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { createContext, runInContext } from 'node:vm'

const PROGRAMS = resolve('e2e/bundlers/programs')
/** The answer of `ask` in `programs/agent.js`. */
export const ANSWER = 'Order 1042 is in transit.'

/** The tarball that would be published. */
export function pack(folder) {
  const [{ filename }] = JSON.parse(npm(['pack', '--json', '--ignore-scripts', '--pack-destination', folder], '.'))
  return join(folder, filename)
}

/** A program of a user, in a folder of its own. */
export class App {
  #tarball

  constructor(folder, tarball) {
    this.folder = mkdtempSync(join(folder, 'app-'))
    this.#tarball = tarball
    cpSync(PROGRAMS, this.folder, { recursive: true })
    this.write('package.json', JSON.stringify({ type: 'module', private: true }))
  }

  /** Installs the package and others; no install script runs. */
  install(...packages) {
    npm(['install', '--ignore-scripts', '--no-audit', '--no-fund', this.#tarball, ...packages], this.folder)
  }

  write(name, text) {
    writeFileSync(join(this.folder, name), text)
  }

  read(name) {
    return readFileSync(join(this.folder, name), 'utf8')
  }

  run(program, ...args) {
    const options = { cwd: this.folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], env: environment() }
    return execFileSync(program, args, options)
  }

  /** A binary of the registry's package for this platform. */
  programIn(scope, path) {
    const packages = join(this.folder, 'node_modules', scope)
    const [name] = readdirSync(packages)
    return join(packages, name, path)
  }

  bin(name, ...args) {
    return this.run(join(this.folder, 'node_modules', '.bin', name), ...args)
  }

  /** Runs a bundled program from a folder in which nothing is installed, and compares its output. */
  expectOutput(file, lines, program = process.execPath) {
    const alone = mkdtempSync(join(this.folder, '..', 'alone-'))
    cpSync(join(this.folder, file), join(alone, 'out'), { recursive: true })
    const printed = execFileSync(program, [join(alone, 'out', 'node.mjs')], { encoding: 'utf8', env: environment() })
    expectEqual(printed, outputWith(lines))
  }

  /** Runs a program for browsers where nothing of Node exists. */
  async expectInBrowser(file) {
    const context = browser()
    runInContext(this.read(file), context)
    expectEqual(await context.answer, ANSWER)
  }

  /** Starts a server, asks it, and ends it. `ready` finds its address in the output. */
  async expectServed({ command, args, ready, path = '/', lines = [] }) {
    const child = spawn(join(this.folder, 'node_modules', '.bin', command), args, {
      cwd: this.folder,
      env: environment(),
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    })
    try {
      const url = await addressOf(child, ready)
      const response = await fetch(url + path)
      expectEqual(await response.text(), [ANSWER, ...lines].join('\n'))
    } finally {
      if (child.exitCode === null) process.kill(-child.pid, 'SIGKILL')
    }
  }
}

/** The output of `programs/node.js`. */
export function outputWith(lines) {
  return `${[ANSWER, 'Monday.', ...lines].join('\n')}\n`
}

export function expectEqual(found, expected) {
  if (found !== expected) throw new Error(`Expected ${JSON.stringify(expected)}, got ${JSON.stringify(found)}.`)
}

function npm(args, cwd) {
  return execFileSync('npm', args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
}

function environment() {
  return { ...process.env, NEXT_TELEMETRY_DISABLED: '1', NODE_ENV: 'production', NODE_OPTIONS: '' }
}

function addressOf(child, ready) {
  return new Promise((done, fail) => {
    let text = ''
    const timer = setTimeout(() => fail(new Error(`The server did not start:\n${text}`)), 60_000)
    const read = (piece) => {
      text += String(piece)
      const [, address] = ready.exec(text) ?? []
      if (address === undefined) return
      clearTimeout(timer)
      done(address.startsWith('http') ? address : `http://127.0.0.1:${address}`)
    }
    for (const stream of child.stdio.slice(1)) stream.on('data', read)
    child.once('exit', (code) => fail(new Error(`The server ended with ${code}:\n${text}`)))
  })
}

const GLOBALS = `AbortController AbortSignal Blob console crypto DOMException Event EventTarget fetch FormData Headers
  performance queueMicrotask ReadableStream Request Response structuredClone TextDecoder TextEncoder TransformStream URL
  URLSearchParams atob btoa`

/** The globals of a browser. Timers are numbers there. */
function browser() {
  const timers = new Map()
  const started = (timer) => timers.set(timers.size + 1, timer).size
  const clear = (id) => clearTimeout(timers.get(id))
  return createContext({
    ...Object.fromEntries(GLOBALS.split(/\s+/).map((name) => [name, globalThis[name]])),
    setTimeout: (work, ms) => started(setTimeout(work, ms)),
    setInterval: (work, ms) => started(setInterval(work, ms)),
    ...{ clearTimeout: clear, clearInterval: clear },
  })
}
