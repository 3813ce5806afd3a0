import { memoryLog } from 'thinharness'
import type { LogStore } from 'thinharness'

/** A log whose appends take some turns of the event loop, like those of a database. */
export function slowLog(turns = 3): LogStore {
  const log = memoryLog()
  const store = log.append.bind(log)
  const append: LogStore['append'] = async (...given) => {
    for (let left = turns; left > 0; left--) await new Promise(setImmediate)
    await store(...given)
  }
  return Object.assign(log, { append })
}
