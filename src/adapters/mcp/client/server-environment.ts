/** Variables that a process needs to run and that hold no secrets. */
const PASSED_ON = [
  'PATH',
  'HOME',
  'USER',
  'LOGNAME',
  'SHELL',
  'TERM',
  'LANG',
  'TZ',
  'TMPDIR',
  // Windows
  'APPDATA',
  'COMSPEC',
  'HOMEDRIVE',
  'HOMEPATH',
  'LOCALAPPDATA',
  'PATHEXT',
  'PROCESSOR_ARCHITECTURE',
  'PROGRAMDATA',
  'PROGRAMFILES',
  'SYSTEMDRIVE',
  'SYSTEMROOT',
  'TEMP',
  'USERNAME',
  'USERPROFILE',
  'WINDIR',
]

/**
 * The environment of a server's process: the variables that any program needs, `LC_*`, and those named for this server.
 * Nothing else of the host's, so that a key reaches only the server that it was named for.
 */
export function serverEnvironment(
  named: Readonly<Record<string, string>>,
  host: NodeJS.ProcessEnv = process.env,
): Record<string, string> {
  const passed = Object.entries(host).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && isPassedOn(entry[0]) && !entry[1].startsWith('()'),
  )
  return { ...Object.fromEntries(passed), ...named }
}

function isPassedOn(name: string): boolean {
  const upper = name.toUpperCase()
  return PASSED_ON.includes(upper) || upper.startsWith('LC_')
}
