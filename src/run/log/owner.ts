import { readFileSync, readlinkSync } from 'node:fs'

/**
 * A name under which a run can be claimed: the place, the process and its start, and a random part, so that no two are
 * equal. Others at the same place can tell from it whether the process is still there (`hasEnded`).
 */
export function newOwner(): string {
  self ??= [thisPlace(), process.pid, startOf(process.pid) ?? Math.round(performance.timeOrigin)].join('/')
  return `${self}/${globalThis.crypto.randomUUID().replaceAll('-', '')}`
}

/**
 * Whether the process that made `owner` is surely gone: it was of this place (on Linux: of this boot and this pid
 * namespace, else: of a host of this name), and no process of its number and start is there. False when in doubt.
 */
export function hasEnded(owner: string): boolean {
  const [place, pidText, start, random, more] = owner.split('/')
  const pid = Number(pidText)
  if (random === undefined || more !== undefined || !Number.isInteger(pid) || pid < 1) return false
  here ??= thisPlace()
  if (place !== here || pid === process.pid) return false
  if (!isThere(pid)) return true
  const startNow = startOf(pid)
  return startNow !== undefined && startNow !== start
}

/** Read once, when first needed. */
let here: string | undefined
let self: string | undefined

function thisPlace(): string {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
    const [namespace] = /\d+/.exec(readlinkSync('/proc/self/ns/pid')) ?? []
    if (boot !== '' && namespace !== undefined) return `boot:${boot}:${namespace}`
  } catch {
    // Not Linux, or one that hides it.
  }
  return `host:${encodeURIComponent(process.getBuiltinModule('node:os').hostname())}`
}

function isThere(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH'
  }
}

/** When a process of this machine began, in the kernel's own count; `ended` for one that is dead and not yet buried. */
function startOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The second field is a name in parentheses, which may hold anything.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return fields[0] === 'Z' || fields[0] === 'X' ? 'ended' : fields[19]
  } catch {
    return undefined
  }
}
