import { objectSchema } from '#util/json.js'
import { resolve } from 'node:path'
import type { ToolReach, ToolSpec } from '#core/tools/tool-spec.js'
import { networkText } from '../sandbox/options.js'
import { failedOutcome } from '../workspace/file-failure.js'
import { shownPath } from '../workspace/path-text.js'
import { UNCONFINED } from '../process/environment.js'
import { sharedOptions, workspaceOf } from '../workspace/workspace.js'
import { bashSettings } from './options.js'
import type { BashOptions, BashSettings } from './options.js'
import type { BashArguments, ShellRunner } from './run-command.js'

/**
 * `bash`: one shell command. Opt-in, sequential. A command has no input, the environment of `env`, and a time limit; when it
 * ends, all processes that it started are ended too. A command that fails is a result, not a failed call: see `success` and
 * `exit_code` in the metadata.
 *
 * A command runs in a sandbox if this machine has one; see `sandbox`. Without one it is confined only by the rights of this
 * process's user: a `cwd` inside the root does not confine it, and it can read the environment of this process. The shell is a
 * login shell that reads the system's profile, not the user's.
 * @throws HarnessError `invalid_options`, also on Windows; PathValidationError if the output folder leaves the root.
 */
export function bash(options: BashOptions = {}): ToolSpec {
  const settings = bashSettings(options)
  const { root, outputDir } = settings
  const files = sharedOptions({ root, outputDir })
  const runner = lazyRunner(settings)
  return {
    name: 'bash',
    description:
      'Run one shell command. Prefer the tools made for a task, such as those for reading and searching files.',
    instructions: bashInstructions(settings),
    parameters: PARAMETERS,
    annotations: { readOnly: false, destructive: true, idempotent: false, openWorld: true },
    reach: bashReach(settings, root),
    sandbox: settings.sandbox ?? 'harness',
    sequential: true,
    aliases: { cmd: 'command' },
    pathFields: ['cwd'],
    // The tool itself limits the output.
    maxOutputChars: settings.maxOutputChars * 2 + 10_000,
    async call(args, context) {
      const workspace = workspaceOf(files, context.root)
      context.signal.throwIfAborted()
      try {
        return await (await runner()).run({ workspace, args: args as unknown as BashArguments, context })
      } catch (error) {
        return failedOutcome(error, shownPath(typeof args['cwd'] === 'string' ? args['cwd'] : '.'))
      }
    },
  }
}

/** Loaded by the first command. */
export function lazyRunner(settings: BashSettings): () => Promise<ShellRunner> {
  let loading: Promise<ShellRunner> | null = null
  return () => (loading ??= import('./run-command.js').then((module) => new module.ShellRunner(settings)))
}

function bashReach({ sandbox, network, readPaths, writePaths, env }: BashSettings, root?: string): ToolReach {
  const secrets = Object.keys(env)
  if (sandbox !== 'required') return { ...UNCONFINED, secrets }
  const writes = [root === undefined ? '.' : resolve(root), ...writePaths]
  return {
    reads: [...writes, ...readPaths],
    writes,
    hosts: typeof network === 'boolean' ? (network ? ['*'] : []) : network,
    programs: ['*'],
    secrets,
  }
}

const PARAMETERS = objectSchema(['command'], {
  command: { type: 'string', minLength: 1, description: 'The command, as typed into a shell. It gets no input.' },
  cwd: { type: 'string', description: 'Folder to run it in, relative to the workspace root. Default: the root.' },
  timeout_ms: {
    type: 'integer',
    minimum: 1,
    description: 'Time limit in ms. Longer times are reduced to the maximum.',
  },
  max_chars: {
    type: 'integer',
    minimum: 1,
    description: 'Most characters to return of each stream, below the usual cap.',
  },
})

function bashInstructions({ sandbox, network, gitWrite }: BashSettings): string {
  const lines = [
    '`bash`: use it only if no other tool can do the task.',
    '- Each call starts a new shell: only files persist, and background processes end with it.',
    '- There is no input and no terminal: use flags instead of interactive prompts.',
  ]
  if (sandbox === 'off') return lines.join('\n')
  const when = sandbox === 'required' ? 'A command' : 'If a sandbox is available, a command'
  return [
    ...lines,
    `- ${when} can write to the workspace${gitWrite ? '' : ' (not to `.git`)'} and an empty \`/tmp\` only, and ${networkText(network)}.`,
  ].join('\n')
}
