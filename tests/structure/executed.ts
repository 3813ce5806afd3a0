import { Session } from 'node:inspector'
import { afterAll } from 'vitest'
import type { Profiler } from 'node:inspector'

/** The functions of the source that were called, by file. */
export type Executed = Map<string, Set<string>>

/** A profiler of this process, until the end of the test file. */
export function profiled(): Session {
  const session = new Session()
  session.connect()
  session.post('Debugger.enable')
  session.post('Profiler.enable')
  session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  afterAll(() => {
    session.post('Profiler.stopPreciseCoverage')
    session.disconnect()
  })
  return session
}

/** What was executed since the last call. */
export function executedSince(session: Session): Executed {
  const executed: Executed = new Map()
  session.post('Profiler.takePreciseCoverage', (_error, { result }) => {
    for (const script of result) note(session, script, executed)
  })
  return executed
}

export function functionsIn(executed: Executed): number {
  return [...executed.values()].reduce((sum, names) => sum + names.size, 0)
}

/** The counts, and each function. */
export function listed(executed: Executed): string {
  const list = [...executed].map(([file, names]) => `${file}: ${[...names].join(', ')}`).sort()
  return `${executed.size} files, ${functionsIn(executed)} functions:\n${list.join('\n')}`
}

/** What the test runner adds: an accessor for each export. */
const EXPORTED = /^\(\) => \{ try \{ return [\w$]+;? \} catch \{\} \}$/

/** The functions of the source that were called. */
function note(session: Session, { scriptId, url, functions }: Profiler.ScriptCoverage, executed: Executed): void {
  const file = /\/src\/(.*)\.ts/.exec(url)?.[1]
  if (file === undefined) return
  let source = ''
  session.post('Debugger.getScriptSource', { scriptId }, (_error, { scriptSource }) => (source = scriptSource))
  for (const { functionName, ranges } of functions) {
    const [range] = ranges
    if (range === undefined || range.count === 0) continue
    if (EXPORTED.test(source.slice(range.startOffset, range.endOffset))) continue
    const names = executed.get(file) ?? new Set()
    names.add(`${functionName || 'anonymous'}@${range.startOffset}`)
    executed.set(file, names)
  }
}
