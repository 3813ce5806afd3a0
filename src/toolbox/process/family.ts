import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import type { Environment } from './environment.js'

/** Names a command in the environment of its processes. */
const VARIABLE = 'THINHARNESS_COMMAND'
/** A process that is starting another one while it is ended leaves one more. */
const ROUNDS = 5

/**
 * The processes of a command that runs without a sandbox, by a variable that they inherit. A process that removes it from its
 * environment and leaves the process group is not found.
 */
export class Family {
  readonly #id = randomBytes(12).toString('hex')
  readonly #guarded: string[] = []

  get environment(): Environment {
    return { [VARIABLE]: this.#id }
  }

  /**
   * Has the processes ended if this process is killed. Called before the command starts, for this process can be killed while
   * it starts it, and again with its process group, if there is no `/proc`.
   */
  guard(pid?: number): void {
    const each = `${pid ?? ''}:${this.#id}`
    this.#guarded.push(each)
    guardian.add(each)
  }

  /** Ends all processes that are left. */
  async end(): Promise<void> {
    if (process.platform === 'linux') {
      for (let round = 0; round < ROUNDS; round++) {
        const left = await processesWith(`${VARIABLE}=${this.#id}`)
        if (left.length === 0) break
        left.forEach(kill)
      }
    }
    guardian.remove(this.#guarded)
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended.
  }
}

async function processesWith(variable: string): Promise<readonly number[]> {
  const pids = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name))
  const found = await Promise.all(
    pids.map(async (pid) => {
      const environment = await readFile(`/proc/${pid}/environ`, 'latin1').catch(() => '')
      return environment.split('\0').includes(variable) && Number(pid) !== process.pid ? [Number(pid)] : []
    }),
  )
  return found.flat()
}

/**
 * Reads lines until this process closes the pipe or ends. Then it kills the groups that were added and not removed, and the
 * processes with their variable, several times: one that is being started has no variable yet.
 */
const SCRIPT = `all=
while read -r sign each; do
  case $sign in
    +) all="$all $each" ;;
    -) rest=; for one in $all; do [ "$one" = "$each" ] || rest="$rest $one"; done; all=$rest ;;
  esac
done
ids=
for each in $all; do
  case $each in
    :*) ids="$ids \${each#:}" ;;
    *) kill -KILL -- "-\${each%%:*}" ;;
  esac
done
for round in \${ids:+${Array.from({ length: ROUNDS }, (_, round) => round).join(' ')}}; do
  for id in $ids; do
    for file in $(grep -lzs "^${VARIABLE}=$id\\$" /proc/[0-9]*/environ); do
      file=\${file#/proc/}; kill -KILL "\${file%/environ}"
    done
  done
  sleep 0.1
done`

/** A small process that exists while commands run without a sandbox, and outlives this one for a moment if it is killed. */
class Guardian {
  #process: ChildProcess | null = null
  readonly #guarded = new Set<string>()

  add(each: string): void {
    this.#guarded.add(each)
    this.#process ??= this.#start()
    this.#process.stdin?.write(`+ ${each}\n`)
  }

  remove(all: readonly string[]): void {
    for (const each of all) {
      this.#guarded.delete(each)
      this.#process?.stdin?.write(`- ${each}\n`)
    }
    if (this.#guarded.size > 0) return
    this.#process?.stdin?.end()
    this.#process = null
  }

  #start(): ChildProcess {
    const env = { PATH: process.env['PATH'] ?? '/usr/bin:/bin' }
    const child = spawn('/bin/sh', ['-c', SCRIPT], { env, detached: true, stdio: ['pipe', 'ignore', 'ignore'] })
    // Without it, commands may outlive this process, which is no reason for them to fail.
    child.on('error', () => undefined)
    child.stdin.on('error', () => undefined)
    child.unref()
    return child
  }
}

const guardian = new Guardian()
