import { createHash } from 'node:crypto'

/** Bytes of a file's name that every file system takes, with room for the ending. */
const LONGEST_NAME = 240

/**
 * The name of a run's file, without its ending. What is not safe in every file system, upper case among it, is written
 * as its code; of a name that gets too long by that, the end is a digest of the whole.
 */
export function fileNameOf(runId: string): string {
  const bytes = [...Buffer.from(runId)].map((byte) => {
    const character = String.fromCharCode(byte)
    return /[a-z0-9_-]/.test(character) ? character : `%${byte.toString(16).padStart(2, '0')}`
  })
  const name = bytes.join('')
  if (name.length <= LONGEST_NAME) return name
  const digest = createHash('sha256').update(runId).digest('hex')
  return `${name.slice(0, LONGEST_NAME - digest.length - 1)}~${digest}`
}

/** The run that a file's name says, without its ending; nothing where that was shortened, or is none of ours. */
export function runIdOf(name: string): string | undefined {
  if (!/^(?:[a-z0-9_-]|%[0-9a-f]{2})+$/.test(name)) return undefined
  const bytes = name.replace(/%(..)/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
  return Buffer.from(bytes, 'latin1').toString()
}
