import { excerptOf } from '../process/capture.js'
import { failedOutcome } from '../workspace/file-failure.js'
import type { FileToolOptions } from '../workspace/options.js'
import { shownPath } from '../workspace/path-text.js'
import { spill } from '../workspace/spill.js'
import { sharedOptions, workspaceOf } from '../workspace/workspace.js'
import type { BackgroundCommand, BackgroundEnd } from './background-command.js'
import { bash, lazyRunner } from './bash.js'
import { bashSettings } from './options.js'
import type { BashOptions, BashSettings } from './options.js'
import type { BashArguments, ShellRunner } from './run-command.js'
import type { Extension, ExtensionRun } from '#core/extension/extension.js'
import type { ToolContext, ToolOutcome, ToolSpec } from '#core/tools/tool-spec.js'
import { cutText } from '#util/characters.js'
import type { JsonObject, JsonValue } from '#util/json.js'
import { isObject, objectSchema } from '#util/json.js'

/** Commands in the background that a run may have at a time. */
const MOST_RUNNING = 8
const MAX_COMMAND_CHARS = 100

/**
 * `bash` with commands in the background, as an extension: `bash` takes `background: true` and returns an id at once,
 * `bash_output` reads the output of a command since the last read, `bash_kill` ends it. A notice tells the model when one has
 * ended. Commands in the background end with the run (not at a pause), with `close()` of the harness, with the process, and
 * after an hour. After a crash they are reported as ended.
 * @throws HarnessError `invalid_options`, as `bash`.
 *
 * @example
 * new Harness({ root: './project', use: [shell()] })
 */
export function shell(options: BashOptions = {}): Extension {
  const background = new Background(options)
  return {
    name: 'shell',
    tools: [background.bash, background.output, background.kill],
    forRun: (run) => {
      background.commandsOf(run.runId).open(run)
      return {
        hooks: [
          {
            event: 'run_end',
            agents: ['*'],
            // A paused run continues, maybe here.
            handler: async ({ result }) => {
              if (result?.status !== 'paused') await background.endRun(run.runId)
            },
          },
        ],
        notices: () => {
          const text = background.commandsOf(run.runId).notice()
          return text === '' ? [] : [{ name: 'background_commands', text }]
        },
      }
    },
    close: () => background.endAll(),
  }
}

/** The tools, and the commands of all runs. */
class Background {
  readonly bash: ToolSpec
  readonly output: ToolSpec
  readonly kill: ToolSpec
  readonly #settings: BashSettings
  readonly #files: FileToolOptions
  readonly #runner: () => Promise<ShellRunner>
  readonly #runs = new Map<string, RunCommands>()

  constructor(options: BashOptions) {
    const settings = bashSettings(options)
    const { root, outputDir } = settings
    this.#settings = settings
    this.#files = sharedOptions({ root, outputDir })
    this.#runner = lazyRunner(settings)
    this.bash = withBackground(bash(options), (args, context) => this.#start(args, context))
    const shared = { reach: {}, sequential: true, maxOutputChars: settings.maxOutputChars + 10_000 } as const
    this.output = {
      name: 'bash_output',
      description:
        'Read what a command in the background has written since the last time, and whether it is still running.',
      parameters: OUTPUT_PARAMETERS,
      annotations: { readOnly: true },
      ...shared,
      call: ({ id, wait_ms: wait }, context) =>
        this.#report(id, context, (command) => command.change(typeof wait === 'number' ? wait : 0, context.signal)),
    }
    this.kill = {
      name: 'bash_kill',
      description: 'End a command in the background, with everything that it started.',
      parameters: KILL_PARAMETERS,
      annotations: { readOnly: false, destructive: true, idempotent: true },
      ...shared,
      call: ({ id }, context) => this.#report(id, context, (command) => command.kill()),
    }
  }

  commandsOf(runId: string): RunCommands {
    let commands = this.#runs.get(runId)
    if (commands === undefined) this.#runs.set(runId, (commands = new RunCommands()))
    return commands
  }

  async endRun(runId: string): Promise<void> {
    const commands = this.#runs.get(runId)
    this.#runs.delete(runId)
    await commands?.endAll()
  }

  async endAll(): Promise<void> {
    await Promise.all([...this.#runs.keys()].map((runId) => this.endRun(runId)))
  }

  async #start(args: BashArguments, context: ToolContext): Promise<ToolOutcome> {
    const commands = this.commandsOf(context.runId)
    if (commands.running >= MOST_RUNNING) {
      return commandFailure('TooManyCommands', `${MOST_RUNNING} commands are running in the background: end one first.`)
    }
    const workspace = workspaceOf(this.#files, context.root)
    const prepared = await (await this.#runner()).prepare({ workspace, args, context })
    if ('kind' in prepared) return prepared
    const id = commands.nextId()
    try {
      await commands.record({ started: id, command: cutText(args.command, MAX_COMMAND_CHARS) })
      context.signal.throwIfAborted()
    } catch (error) {
      await prepared.sandbox.close()
      throw error
    }
    const { BackgroundCommand } = await import('./background-command.js')
    commands.add(new BackgroundCommand(id, prepared, this.#settings))
    const content = `Started in the background as \`${id}\`. Read its output with \`bash_output\`, end it with \`bash_kill\`.`
    return { kind: 'succeeded', content, metadata: { id, sandbox: prepared.launch.sandbox } }
  }

  async #report(
    given: JsonValue | undefined,
    context: ToolContext,
    use: (command: BackgroundCommand) => Promise<void>,
  ): Promise<ToolOutcome> {
    const commands = this.commandsOf(context.runId)
    const id = typeof given === 'string' ? given : ''
    const command = commands.get(id)
    if (command === undefined) return commandFailure('NotFound', commands.missing(id))
    await use(command)
    const { end } = command
    const { text, metadata } = await this.#excerpt(command.takeOutput(), context)
    if (end !== null) await commands.forget(id)
    return {
      kind: 'succeeded',
      content: `${id} ${backgroundState(end)}\n${text}`,
      metadata: { id, running: end === null, ...(end !== null && { exit_code: end.exitCode }), ...metadata },
    }
  }

  async #excerpt(output: string, { root }: ToolContext): Promise<{ text: string; metadata: JsonObject }> {
    const { maxOutputChars: limit } = this.#settings
    if (output === '') return { text: '(no new output)', metadata: {} }
    const { text, truncated } = excerptOf(output, limit)
    if (!truncated) return { text, metadata: {} }
    const { metadata } = await spill(workspaceOf(this.#files, root), { text: output, prefix: 'bash_output', limit })
    const { saved_to_display: path } = metadata
    const note = typeof path === 'string' ? `full text in ${path}: use \`read\`` : 'the rest could not be saved'
    return { text: `(cut; ${note})\n${text}`, metadata: { truncated: true } }
  }
}

/** `bash` with the argument `background`. */
function withBackground(
  foreground: ToolSpec,
  start: (args: BashArguments, context: ToolContext) => Promise<ToolOutcome>,
): ToolSpec {
  const { parameters, instructions = '' } = foreground
  const background = {
    type: 'boolean',
    description: 'Return at once with an id; the command runs on. Default false.',
  } as const
  return {
    ...foreground,
    instructions: `${instructions}\n- \`background: true\` is for servers and watchers: they run until you end them, or the run ends.`,
    parameters: { ...parameters, properties: { ...(parameters['properties'] as object), background } },
    async call({ background: runsOn, ...args }, context) {
      if (runsOn !== true) return foreground.call(args, context)
      try {
        return await start(args as unknown as BashArguments, context)
      } catch (error) {
        return failedOutcome(error, shownPath(typeof args['cwd'] === 'string' ? args['cwd'] : '.'))
      }
    },
  }
}

function commandFailure(errorType: string, content: string): ToolOutcome {
  return { kind: 'failed', errorType, content, retry: false }
}

const ID = { type: 'string', minLength: 1, description: 'The id that `bash` returned.' } as const

const OUTPUT_PARAMETERS = objectSchema(['id'], {
  id: ID,
  wait_ms: {
    type: 'integer',
    minimum: 0,
    maximum: 60_000,
    description: 'Wait at most this long for new output, or for the end. Default 0.',
  },
})

const KILL_PARAMETERS = objectSchema(['id'], { id: ID })

/** The commands of one run in the background. */
class RunCommands {
  readonly #commands = new Map<string, BackgroundCommand>()
  /** Commands that an earlier process ran. */
  readonly #lost = new Set<string>()
  #count = 0
  #run: ExtensionRun | null = null

  /** The run begins, or continues. */
  open(run: ExtensionRun): void {
    this.#run = run
    for (const value of run.recorded) {
      if (!isObject(value)) continue
      const { started, ended } = value
      if (typeof started === 'string') {
        this.#count = Math.max(this.#count, Number(started.slice(PREFIX.length)))
        if (!this.#commands.has(started)) this.#lost.add(started)
      }
      if (typeof ended === 'string') this.#lost.delete(ended)
    }
  }

  get running(): number {
    return [...this.#commands.values()].filter(({ end }) => end === null).length
  }

  nextId(): string {
    return `${PREFIX}${(this.#count += 1)}`
  }

  async record(value: JsonObject): Promise<void> {
    await this.#run?.record(value)
  }

  add(command: BackgroundCommand): void {
    this.#commands.set(command.id, command)
  }

  get(id: string): BackgroundCommand | undefined {
    return this.#commands.get(id)
  }

  /** Its end has been reported. */
  async forget(id: string): Promise<void> {
    if (this.#commands.delete(id)) await this.record({ ended: id })
  }

  missing(id: string): string {
    if (this.#lost.has(id)) return `${id} ended when the process that ran it ended. Its output is lost.`
    const known = [...this.#commands.keys()].join(', ') || 'none'
    return `There is no command ${shownPath(id)} in the background. Known: ${known}.`
  }

  /** For the model; empty if there is nothing to say. */
  notice(): string {
    const lines = [...this.#commands.values()].map((command) => {
      const unread = command.end !== null && command.hasUnread ? ' Its output has not been read.' : ''
      return `${command.id} ${backgroundState(command.end)}${unread}`
    })
    const lost = [...this.#lost].map((id) => `${id} ended when the process that ran it ended.`)
    const all = [...lost, ...lines]
    return all.length === 0 ? '' : `Commands in the background:\n${all.join('\n')}`
  }

  async endAll(): Promise<void> {
    await Promise.all([...this.#commands.values()].map((command) => command.kill()))
  }
}

const PREFIX = 'bg_'

/** A sentence about a command, without its id. */
function backgroundState(end: BackgroundEnd | null): string {
  if (end === null) return 'is running.'
  if (end.stopped === 'aborted') return 'was ended.'
  if (end.stopped !== null) return 'was ended: it ran longer than an hour.'
  return end.exitCode === null
    ? `was ended by ${end.signal ?? 'a signal'}.`
    : `has ended with exit code ${end.exitCode}.`
}
