/** Why process groups are not available on this platform; `undefined` if they are. */
export function processGroupsProblem(platform: NodeJS.Platform = process.platform): string | undefined {
  if (platform !== 'win32') return undefined
  return 'it needs process groups and a POSIX shell, which Windows does not have; use the Windows Subsystem for Linux'
}

/** Sends a signal to a whole group; has no effect if it no longer exists or belongs to another user. */
export function signalGroup(pid: number | undefined, signal: NodeJS.Signals): void {
  sendSignal(pid, signal)
}

/** True if a group still has processes. */
export function groupExists(pid: number | undefined): boolean {
  return sendSignal(pid, 0)
}

function sendSignal(pid: number | undefined, signal: NodeJS.Signals | 0): boolean {
  // With -1, the signal would go to every process.
  if (pid === undefined || pid <= 1) return false
  try {
    return process.kill(-pid, signal)
  } catch {
    return false
  }
}
