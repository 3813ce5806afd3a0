import { homedir } from 'node:os'

const MAX_PATH_CHARS = 4_096
const MAX_SHOWN_CHARS = 200

/** The problem of a path as written, on any file system; `undefined` if there is none. */
export function pathProblem(raw: string, platform: NodeJS.Platform = process.platform): string | undefined {
  if (raw === '') return 'path is empty'
  if (raw.includes('\0')) return 'path contains a NUL character'
  if (raw.length > MAX_PATH_CHARS) return `path is longer than ${MAX_PATH_CHARS} characters`
  return platform === 'win32' ? windowsProblem(raw) : foreignProblem(raw)
}

/** `~` and `~/…` as the home folder of the user that runs the process. */
export function expandHome(raw: string): string {
  return raw === '~' || raw.startsWith('~/') ? homedir() + raw.slice(1) : raw
}

/** A path for a message to a model: one line, bounded. */
export function shownPath(path: string): string {
  const cut = path.length > MAX_SHOWN_CHARS ? `${path.slice(0, MAX_SHOWN_CHARS)}…` : path
  return escapeControls(cut)
}

/** Control characters and line separators as `\u….`: a file name must not add lines to a result. */
export function escapeControls(text: string): string {
  return text.replace(/[\p{Cc}\u2028\u2029]/gu, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** On other systems, Windows paths would be odd file names, which are never intended. */
function foreignProblem(raw: string): string | undefined {
  if (/^[A-Za-z]:[\\/]/.test(raw) || raw.startsWith('\\\\'))
    return 'path is a Windows path, which this system does not have'
  if (raw.includes('\\') && raw.split(/[\\/]/).includes('..')) return 'path escapes root'
  return undefined
}

/** Only a drive is allowed before the first separator; links and `..` are resolved later. */
function windowsProblem(raw: string): string | undefined {
  if (/^[\\/]{2}/.test(raw)) return 'network and device paths are not allowed'
  const [, drive = '', rest = ''] = /^([A-Za-z]:)?(.*)$/su.exec(raw) ?? []
  if (drive !== '' && !/^[\\/]/.test(rest)) return 'path is relative to a drive'
  for (const segment of rest.split(/[\\/]/)) {
    const problem = windowsSegmentProblem(segment)
    if (problem !== undefined) return problem
  }
  return undefined
}

function windowsSegmentProblem(segment: string): string | undefined {
  if (segment === '.' || segment === '..' || segment === '') return undefined
  if (segment.includes(':')) return 'path names an alternate data stream'
  if (/[<>"|?*\p{Cc}]/u.test(segment)) return 'path contains a character that Windows does not allow'
  if (/[. ]$/.test(segment)) return 'a part of the path ends in a dot or a space'
  if (/^(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9¹²³])\s*(?:\.|$)/i.test(segment)) {
    return 'path names a device'
  }
  return undefined
}
