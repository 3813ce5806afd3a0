import { hostProcess, moduleOrStub } from './node.js'

/**
 * A unique name under which a run can be claimed: the place, the process and its start, and a random part. Others at the
 * same place can read from it if the process still exists (`hasEnded`).
 */
export function newOwner(): string {
  if (self === undefined) {
    const { pid = 0 } = hostProcess()
    self = [thisPlace(), pid, startOf(pid) ?? Math.round(performance.timeOrigin)].join('/')
  }
  const owner = `${self}/${globalThis.crypto.randomUUID().replaceAll('-', '')}`
  // Only simulated chance gives a name twice: then the new owner has it.
  ended.delete(owner)
  return owner
}

/** Names of this process under which nobody claims anything any more, although their claims could not be released. */
const ended = new Set<string>()

/** Notes that nothing is claimed under a name of this process any more: a claim that could not be released does not stand. */
export function endOwner(owner: string): void {
  if (self !== undefined && owner.startsWith(`${self}/`)) ended.add(owner)
}

/**
 * True if the process that made `owner` has certainly ended, or has ended with that name (`endOwner`): it was of this place
 * (on Linux: of this boot and this pid namespace, else: of a host of this name), and no process with its number and start
 * exists. False if in doubt.
 */
export function hasEnded(owner: string): boolean {
  if (ended.has(owner)) return true
  const [place, pidText, start, random, more] = owner.split('/')
  const pid = Number(pidText)
  if (random === undefined || more !== undefined || !Number.isInteger(pid) || pid < 1) return false
  here ??= thisPlace()
  if (place !== here || pid === hostProcess().pid) return false
  if (!isThere(pid)) return true
  const startNow = startOf(pid)
  return startNow !== undefined && startNow !== start
}

// An import of `node:fs` loads the streams of Node as well: 4 ms for every `import 'thinharness'`.

/** Read once, on first use. */
let here: string | undefined
let self: string | undefined

function thisPlace(): string {
  try {
    const { readFileSync, readlinkSync } = moduleOrStub('node:fs')
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
    const [namespace] = /\d+/.exec(readlinkSync('/proc/self/ns/pid')) ?? []
    if (boot !== '' && namespace !== undefined) return `boot:${boot}:${namespace}`
  } catch {
    // Not Linux, or a container that hides it.
  }
  try {
    return `host:${encodeURIComponent(moduleOrStub('node:os').hostname())}`
  } catch {
    // Deno without `--allow-sys`, and browsers: nobody can find out whether this process has ended, so its claims expire.
    return `unknown:${globalThis.crypto.randomUUID()}`
  }
}

function isThere(pid: number): boolean {
  try {
    hostProcess().kill?.(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH'
  }
}

/** The start of a process of this machine, in the kernel's clock ticks; `ended` for a zombie. */
function startOf(pid: number): string | undefined {
  try {
    const stat = moduleOrStub('node:fs').readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The second field is a name in parentheses, which may contain anything.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return fields[0] === 'Z' || fields[0] === 'X' ? 'ended' : fields[19]
  } catch {
    return undefined
  }
}
