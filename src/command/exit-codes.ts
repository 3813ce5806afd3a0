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

/** The code for the shell of an error that ended a run. */
export function exitCodeOf(code = ''): number {
  return EXIT_CODES[code] ?? EXIT.failed
}

const EXIT_CODES: Readonly<Record<string, number>> = {
  limit_reached: EXIT.limit,
  run_not_found: EXIT.notFound,
  run_owned: EXIT.elsewhere,
  cancelled: EXIT.interrupted,
  ...Object.fromEntries(
    ['missing_key', 'missing_model', 'missing_dependency', 'invalid_options', 'invalid_answer', 'invalid_state'].map(
      (each) => [each, EXIT.wrongUse],
    ),
  ),
}
