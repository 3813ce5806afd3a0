import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { defineTool } from 'thinharness'
import type { ToolSpec } from 'thinharness'
import { z } from 'zod'

const run = promisify(execFile)

/** `bash` in a container that runs already. The name and `reach` let policies for shell commands apply to it. */
export function dockerBash(container: string): ToolSpec {
  return defineTool({
    name: 'bash',
    description: 'Run a shell command. It starts in the folder of the project, and has no network.',
    parameters: z.object({ command: z.string() }),
    reach: { programs: ['*'] },
    async handler({ command }, { signal }) {
      // Ending `docker exec` does not end the command: `timeout` does, in the container.
      const args = ['exec', '--workdir', '/work', container, 'timeout', '120', 'bash', '-c', command]
      try {
        const { stdout, stderr } = await run('docker', args, { signal, maxBuffer: 10_000_000 })
        return { exit_code: 0, stdout, stderr }
      } catch (error) {
        const { code, stdout, stderr } = error as { code?: unknown; stdout?: string; stderr?: string }
        if (typeof code !== 'number') throw error
        return { exit_code: code, stdout: stdout ?? '', stderr: stderr ?? '' }
      }
    },
  })
}
