import { isObject } from '../util/json.js'

/** Runs work that cannot be trusted to end. */
type TimeBox = <T>(work: () => T, ms: number) => T

/** Thrown out of a time box whose work had not ended in time. */
export class TimeBoxError extends Error {
  override readonly name = 'TimeBoxError'
}

/**
 * A way to run synchronous work that is stopped, regular expressions included, after a given time in ms. One use costs
 * about 0.1 ms. V8 stops the work between two of its own steps: what the work had half changed stays so.
 */
export function openTimeBox(): Promise<TimeBox> {
  opened ??= makeTimeBox()
  return opened
}

let opened: Promise<TimeBox> | undefined

async function makeTimeBox(): Promise<TimeBox> {
  const { createContext, Script } = await import('node:vm')
  const inside: { work?: () => unknown } = {}
  const context = createContext(inside)
  const script = new Script('work()')
  return <T>(work: () => T, ms: number): T => {
    inside.work = work
    try {
      return script.runInContext(context, { timeout: ms }) as T
    } catch (error) {
      if (!isTimeout(error)) throw error
      throw new TimeBoxError(`It took longer than ${ms} ms.`, { cause: error })
    } finally {
      delete inside.work
    }
  }
}

/** Told by its code: the error is one of the other context, no `Error` of ours. */
function isTimeout(error: unknown): boolean {
  return isObject(error) && error['code'] === 'ERR_SCRIPT_EXECUTION_TIMEOUT'
}
