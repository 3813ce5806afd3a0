import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { temporaryFolder } from '../support/folder.js'

const HOME = fileURLToPath(new URL('../..', import.meta.url))
export const PROGRAM = join(HOME, 'dist', 'command', 'main.js')

/** The agent of the tests: what it does depends on a word of the prompt. */
const CONFIG = `
import { existsSync, writeFileSync } from 'node:fs'
import { defineTool, HarnessError } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'

const anything = { type: 'object', properties: { amount: { type: 'integer' } } }
const pay = defineTool({
  name: 'pay', description: process.env.PAY_TEXT ?? 'Pays.', parameters: anything, requiresApproval: true,
  handler: ({ amount }) => 'paid ' + amount,
})
const look = defineTool({ name: 'look', description: 'Looks.', parameters: anything, handler: () => 'seen' })
const slow = defineTool({
  name: 'slow', description: 'Takes long.', parameters: anything, onUnknownOutcome: 'retry',
  handler: (_, { signal }) => existsSync('go') ? 'done' : new Promise((resolve, reject) => {
    writeFileSync('slow.pid', String(process.pid))
    const watching = setInterval(() => existsSync('go') && end(() => resolve('done')), 10)
    const end = (ending) => { clearInterval(watching); ending() }
    signal.addEventListener('abort', () => end(() => reject(signal.reason)))
  }),
})

function answer({ transcript }) {
  const users = transcript.filter(({ role, notice }) => role === 'user' && notice !== true)
  const text = users.flatMap(({ content }) => content.map((part) => part.text)).join(' ')
  const results = transcript.filter(({ role }) => role === 'tool').length
  const call = (name, input) => ({ text: 'I will ' + name + '.', calls: [{ name, arguments: input }] })
  if (/fail/.test(text)) throw new HarnessError('provider_error', 'The server is down.')
  if (/pay/.test(text) && results === 0) return call('pay', { amount: 5 })
  if (/loop/.test(text)) return call('look', { amount: results })
  if (/slow/.test(text) && results === 0) return call('slow', {})
  if (/look/.test(text) && results === 0) return call('look', { amount: 1 })
  if (/wild/.test(text)) return 'a\\u001B[31mred\\u0007'
  return 'Answer to: ' + text
}

export default { model: new ScriptedModel().always(answer), tools: [pay, look, slow] }
`

/** An empty folder in which the package is installed, with a config file. */
export function project({ config = CONFIG }: { readonly config?: string | null } = {}): string {
  const folder = temporaryFolder()
  mkdirSync(join(folder, 'node_modules'))
  symlinkSync(HOME, join(folder, 'node_modules', 'thinharness'), 'dir')
  symlinkSync(join(HOME, 'node_modules', 'zod'), join(folder, 'node_modules', 'zod'), 'dir')
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  if (config !== null) writeFileSync(join(folder, 'thinharness.config.js'), config)
  return folder
}

export interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

interface ShellOptions {
  readonly folder: string
  readonly input?: string
  readonly env?: Readonly<Record<string, string>>
}

/** The command as a process of its own. */
export function start(args: readonly string[], { folder, input = '', env = {} }: ShellOptions): Running {
  const child = spawn(process.execPath, [PROGRAM, ...args], { cwd: folder, env: environment(folder, env) })
  child.stdin.on('error', () => undefined)
  child.stdin.end(input)
  return { child, ended: endOf(child) }
}

/** Lines for the shell, in which `thinharness` is the command. */
export function script(text: string, { folder, env = {} }: ShellOptions): Promise<Ended> {
  const lines = `thinharness() { "${process.execPath}" "${PROGRAM}" "$@"; }\n${text}`
  const child = spawn('bash', ['-c', lines], { cwd: folder, env: environment(folder, env) })
  child.stdin.end()
  return endOf(child)
}

/** The command on a terminal of its own: `press` types when the text has appeared on it. */
export function onTerminal(args: readonly string[], { folder, env = {} }: ShellOptions): OnTerminal {
  const words = [process.execPath, PROGRAM, ...args].map((word) => `'${word}'`)
  const child = spawn('script', ['-qec', `stty cols 60 rows 20; ${words.join(' ')}`, '/dev/null'], {
    cwd: folder,
    env: { ...environment(folder, env), TERM: 'xterm', SHELL: '/bin/sh' },
  })
  let [seen, from] = ['', 0]
  child.stdout.on('data', (bytes: Buffer) => (seen += bytes.toString()))
  return {
    child,
    ended: endOf(child),
    press: async (text, keys) => {
      for (; !seen.slice(from).includes(text); await new Promise((resolve) => setTimeout(resolve, 10)))
        if (child.exitCode !== null) throw new Error(`Expected \`${text}\`, got ${JSON.stringify(seen)}.`)
      from = seen.length
      child.stdin.write(keys)
    },
  }
}

export interface OnTerminal extends Running {
  readonly press: (text: string, keys: string) => Promise<void>
}

function environment(folder: string, more: Readonly<Record<string, string>>): Record<string, string> {
  const path = `${dirname(process.execPath)}:${process.env['PATH'] ?? ''}`
  return { PATH: path, HOME: folder, USER: 'ada', LANG: 'C.UTF-8', ...more }
}

export interface Running {
  readonly child: ChildProcess
  readonly ended: Promise<Ended>
}

export function shell(args: readonly string[], options: ShellOptions): Promise<Ended> {
  return start(args, options).ended
}

function endOf(child: ChildProcess): Promise<Ended> {
  let [stdout, stderr] = ['', '']
  child.stdout?.on('data', (bytes: Buffer) => (stdout += bytes.toString()))
  child.stderr?.on('data', (bytes: Buffer) => (stderr += bytes.toString()))
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => resolve({ code, stdout, stderr }))
  })
}

/** Resolves when the tool \`slow\` of a run waits. */
export async function slowCall(folder: string): Promise<void> {
  while (!existsSync(join(folder, 'slow.pid'))) await new Promise((resolve) => setTimeout(resolve, 10))
}
