import { serveAcp } from '../adapters/acp/index.js'
import { Sessions } from '../session/index.js'
import { EXIT } from './exit-codes.js'
import { openModes, openSetup } from './setup.js'
import type { RunFlags } from './setup.js'
import { openRuns } from './stored-runs.js'

/** `acp`: an agent for editors, on standard input and output. */
export async function acp(flags: RunFlags): Promise<number> {
  const log = await openRuns(flags.runs)
  const setup = await openSetup(flags, log)
  const modes = await openModes(flags, setup)
  const sessions = new Sessions({ log, modes })
  const serving = await serveAcp(sessions)
  await serving.closed
  await sessions.close()
  for (const mode of new Set([setup.harness, ...Object.values(modes)])) await mode.close()
  return EXIT.done
}
