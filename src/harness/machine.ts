/** Everything that runs need, loaded in one step by the first run of a process. */
export { describeHarness } from './describe.js'
export { forkLaunch, promptedLaunch, resumedLaunch, storedLaunch } from './launches.js'
export { mapRows } from './map.js'
export { RunLauncher } from './runs.js'
export { Toolset } from './toolset.js'
export { recordedEvents, replayRun } from '../run/replay/replay.js'
export { resolveHistory } from '../run/resume/read-log.js'
