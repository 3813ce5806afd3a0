/** What the command gives back to the shell. */
export const EXIT = {
  done: 0,
  failed: 1,
  wrongUse: 2,
  waits: 3,
  limit: 4,
  notFound: 5,
  elsewhere: 6,
  interrupted: 130,
} as const

/** Ends the command with a sentence for the person, and a code for the shell. */
export class CommandError extends Error {
  override readonly name = 'CommandError'
  readonly exitCode: number

  constructor(message: string, exitCode: number = EXIT.wrongUse) {
    super(message)
    this.exitCode = exitCode
  }
}
