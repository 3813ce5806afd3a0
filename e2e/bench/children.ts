// The processes of the benchmark. Each is ended by the process that started it, and by no other.
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Job } from './contender.js'
import type { Report } from './work.js'

const PROVIDER = fileURLToPath(new URL('./provider.js', import.meta.url))
const CONTENDER = fileURLToPath(new URL('./contender.js', import.meta.url))
/** For one contender, in ms. */
const LONGEST_MS = 300_000

/** A provider on loopback; it ends with this process, or by `stop`. */
export async function startProvider(): Promise<{ readonly baseUrl: string; readonly stop: () => void }> {
  const child = spawn(process.execPath, [PROVIDER], { stdio: ['pipe', 'pipe', 'inherit'] })
  const baseUrl = await new Promise((resolve, reject) => {
    child.stdout.once('data', (bytes) => resolve(String(bytes).trim()))
    child.once('error', reject)
    child.once('exit', (code) => reject(new Error(`The provider ended with code ${code}.`)))
  })
  return { baseUrl: String(baseUrl), stop: () => child.kill() }
}

export interface How {
  /** Of the Node that it runs on. Default: that of this process. */
  readonly path?: string
  /** The folder of its CPU profile. Default: none is made. */
  readonly profiles?: string | undefined
}

/** Runs one contender in a process of its own. */
export function perform(job: Job, { path = process.execPath, profiles }: How = {}): Promise<Report> {
  return new Promise((resolve, reject) => {
    const flags = profiles === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profiles}`]
    const child = spawn(path, ['--expose-gc', ...flags, CONTENDER, JSON.stringify(job)], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, NODE_ENV: 'production', NODE_NO_WARNINGS: '1' },
    })
    const timer = setTimeout(() => child.kill('SIGKILL'), LONGEST_MS)
    let text = ''
    let errors = ''
    child.stdout.on('data', (bytes) => (text += String(bytes)))
    child.stderr.on('data', (bytes) => (errors += String(bytes)))
    child.once('error', reject)
    child.once('close', (code, signal) => {
      clearTimeout(timer)
      // Some libraries write lines of their own.
      if (code === 0) resolve(JSON.parse(text.trimEnd().split('\n').at(-1) ?? '') as Report)
      else reject(new Error(`\`${job.contender}\` ended with ${signal ?? `code ${code}`}.\n${errors.trim()}`))
    })
  })
}
