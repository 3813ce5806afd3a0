/** Why groups of processes cannot be had here; `undefined` where they can. */
export function processGroupsProblem(platform: NodeJS.Platform = process.platform): string | undefined {
  if (platform !== 'win32') return undefined
  return 'it needs process groups and a POSIX shell, which Windows has not; the Windows Subsystem for Linux has them'
}

/** Sends a signal to a whole group; one that is gone, or is another user's, is left alone. */
export function signalGroup(pid: number | undefined, signal: NodeJS.Signals): void {
  send(pid, signal)
}

/** Whether anybody is left in a group. */
export function isGroupThere(pid: number | undefined): boolean {
  return send(pid, 0)
}

function send(pid: number | undefined, signal: NodeJS.Signals | 0): boolean {
  // To -1 a signal would go to every process.
  if (pid === undefined || pid <= 1) return false
  try {
    return process.kill(-pid, signal)
  } catch {
    return false
  }
}
