import { Command, CommanderError, InvalidArgumentError } from 'commander'
import { EXIT } from './exit-codes.js'
import type { Terminal } from './terminal/terminal.js'
import { DEFAULT_RUNS } from './stored-runs.js'

/** What the parts of the command are called with, once the arguments are understood. */
export interface Invocation {
  readonly terminal: Terminal
  readonly version: string
}

type Action = (...args: never[]) => Promise<number>

/**
 * The command and its subcommands. What a subcommand needs is loaded when it is chosen, so that `--help` loads nothing.
 * Gives the code for the shell.
 */
export async function perform(args: readonly string[], { terminal, version }: Invocation): Promise<number> {
  let exitCode: number = EXIT.done
  const program = new Command('thinharness')
    .description('Runs agents, shows what they did, and goes on with what was left.')
    .version(version)
    .showHelpAfterError('(thinharness --help shows the commands)')
    .configureOutput({
      writeOut: (text) => terminal.out(text),
      writeErr: (text) => terminal.draw(text),
      getOutHelpWidth: () => terminal.width,
      getErrHelpWidth: () => terminal.width,
    })
    .exitOverride()
  const does =
    (action: Action) =>
    async (...given: unknown[]): Promise<void> => {
      // Commander adds itself.
      exitCode = await action(...(given.slice(0, -1) as never[]))
    }
  addRunning(program, terminal, does)
  addReading(program, terminal, does)
  addOthers(program, terminal, does)
  try {
    await program.parseAsync([...args], { from: 'user' })
    if (args.length === 0) program.outputHelp()
    return exitCode
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    return error.exitCode === 0 ? EXIT.done : EXIT.wrongUse
  }
}

type Does = (action: Action) => (...given: unknown[]) => Promise<void>

function addRunning(program: Command, terminal: Terminal, does: Does): void {
  const commands = () => import('./run-commands.js')
  running(program.command('run'))
    .argument('<prompt>', 'what to do; - reads standard input')
    .description('Runs a prompt to its answer. Asks before a tool changes something.')
    .option('--resume-from <run>', 'continue the conversation of a run that has ended')
    .addHelpText(
      'after',
      examples('run "What is in this folder?"', 'run --json --yes "Sort the notes." > events.jsonl'),
    )
    .action(does(async (prompt: string, flags: never) => (await commands()).run(prompt, flags, terminal)))
  running(program.command('resume'))
    .argument('<run>', RUN)
    .description('Answers what a run waits for.')
    .option('--answers <file>', 'JSON list of answers')
    .option('--approve <id...>', 'allow the call of this id')
    .option('--reject <id...>', 'reject the call of this id')
    .option('--reason <text>', 'why it is rejected: the model reads it')
    .addHelpText('after', examples('resume last', 'resume last --approve call_1'))
    .action(does(async (run: string, flags: never) => (await commands()).resume(run, flags, terminal)))
  running(program.command('recover'))
    .argument('[run]', RUN)
    .description('Goes on with a run whose process ended, or with all of them.')
    .addHelpText('after', examples('recover', 'recover last'))
    .action(does(async (run: string | undefined, flags: never) => (await commands()).recover(run, flags, terminal)))
  running(program.command('retry'))
    .argument('<run>', RUN)
    .description('Goes on with a run that failed or was cancelled.')
    .addHelpText('after', examples('retry last'))
    .action(does(async (run: string, flags: never) => (await commands()).retry(run, flags, terminal)))
  running(program.command('fork'))
    .argument('<run>', RUN)
    .description('Begins a new run after a turn of another one.')
    .requiredOption('--at <turn>', 'the turn after which it begins', wholeNumber)
    .option('--prompt <text>', 'what it is asked there')
    .addHelpText('after', examples('fork last --at 1 --prompt "Shorter, please."'))
    .action(does(async (run: string, flags: never) => (await commands()).fork(run, flags, terminal)))
}

function addReading(program: Command, terminal: Terminal, does: Does): void {
  const commands = () => import('./read-commands.js')
  stored(program.command('list'))
    .description('Shows the runs, the newest first.')
    .option('--status <names>', 'only these: completed, failed, paused, interrupted, running, queued, cancelled')
    .option('--limit <count>', 'at most so many', wholeNumber, 20)
    .option('--before <run>', 'those before this one')
    .option('--json', 'one summary a line')
    .addHelpText('after', examples('list', 'list --status paused,interrupted --json'))
    .action(does(async (flags: never) => (await commands()).list(flags, terminal)))
  stored(program.command('inspect'))
    .argument('<run>', RUN)
    .description('Shows how a run stands: what waits, what it cost, its last turns.')
    .option('--events', 'all events, one a line')
    .option('--event <number>', 'one event', wholeNumber)
    .option('--json', 'the summary as JSON')
    .addHelpText('after', examples('inspect last', 'inspect last --event 3'))
    .action(does(async (run: string, flags: never) => (await commands()).inspect(run, flags, terminal)))
  stored(program.command('view'))
    .argument('[run]', `${RUN}, or a folder of runs; default: the newest runs`)
    .description('Shows runs as a page: one HTML file, or live from a server of this machine.')
    .option('--out <file>', 'where the page is written; - is standard output; default: a temporary file')
    .option('--serve', 'follow the runs until Ctrl-C')
    .option('--approvals', 'with --serve: people may answer on the page; the run goes on here')
    .option('--port <number>', 'with --serve: default 0, one that is free', wholeNumber, 0)
    .option('--diff <run>', 'beside another run')
    .option('--thread <id>', 'the runs of a conversation')
    .option('--limit <count>', 'without a run: at most so many', wholeNumber, 50)
    .option('--config <file>', 'with --approvals: module whose default export is a harness or its options')
    .option('--model <name>', 'with --approvals: the model that goes on')
    .addHelpText('after', examples('view last --out run.html', 'view --out runs.html'))
    .action(does(async (run: never, flags: never) => (await import('./serve/view.js')).view(run, flags, terminal)))
  running(program.command('replay'))
    .argument('<run>', RUN)
    .description('Runs a run again by its log, without a request or a call, and says the first difference.')
    .addHelpText('after', examples('replay last'))
    .action(does(async (run: string, flags: never) => (await commands()).replay(run, flags, terminal)))
}

function addOthers(program: Command, terminal: Terminal, does: Does): void {
  running(program.command('chat'))
    .description('A conversation in the terminal: lines typed while it works steer it, /help shows what else there is.')
    .option('--thread <id>', 'go on with this conversation')
    .addHelpText('after', examples('chat', 'chat --thread notes'))
    .action(does(async (flags: never) => (await import('./chat-command.js')).chat(flags, terminal)))
  program
    .command('probe')
    .argument('[model]', 'such as openai:gpt-5.5; default: $THINHARNESS_MODEL')
    .description('Sends a few short requests, and shows what a model can do.')
    .addHelpText('after', examples('probe openai:gpt-5.5'))
    .action(does(async (model: string | undefined) => (await import('./probe-command.js')).probeModel(model, terminal)))
  agent(program.command('serve'))
    .description('Serves the agent as a chat page and over HTTP, on this machine.')
    .option('--port <number>', 'where it listens; 0: any that is free', wholeNumber, 4242)
    .option('--host <address>', 'for other machines too: 0.0.0.0; needs --auth')
    .option('--auth [secret]', 'what each request must bring; default: $THINHARNESS_AUTH')
    .addHelpText('after', examples('serve --port 0', 'serve --port 0 --config thinharness.config.js'))
    .action(does(async (flags: never) => (await import('./serve/serve-command.js')).serveAgent(flags, terminal)))
  running(program.command('acp'))
    .description('Makes this process an agent for editors, by the Agent Client Protocol.')
    .addHelpText('after', examples('acp --config thinharness.config.js'))
    .action(does(async (flags: never) => (await import('./acp-command.js')).acp(flags)))
  stored(program.command('import'))
    .argument('<files...>', 'session files of other agents, or files of messages')
    .description('Makes runs of the sessions of other agents.')
    .option('--from <format>', 'its format; default: by its content')
    .option('--json', 'what was found, one line a file')
    .addHelpText('after', examples('import session.jsonl', 'import session.jsonl --from claude-code --json'))
    .action(
      does(async (files: readonly string[], flags: never) =>
        (await import('./import-command.js')).importFiles(files, flags, terminal),
      ),
    )
  program
    .command('init')
    .argument('[folder]', 'where to; default: my-agent, or the name of the example')
    .description('Copies an example to begin with. It works without a key.')
    .option('--example <name>', EXAMPLES)
    .addHelpText('after', examples('init my-agent', 'init --example invoices'))
    .action(
      does(async (folder: string | undefined, flags: never) =>
        (await import('./init-command.js')).init(folder, flags, terminal),
      ),
    )
}

const EXAMPLES = 'starter, chat, coding-agent, support-desk, research, records, invoices or fleet'
const RUN = 'an id, the beginning of one, a file of events, or last'

function stored(command: Command): Command {
  return command.option('--runs <place>', 'folder of the runs, or a SQLite file', DEFAULT_RUNS)
}

function running(command: Command): Command {
  return agent(command)
    .option('--json', 'events as JSON, one a line, and the result as the last line')
    .option('--deltas', 'with --json: pieces of text too')
}

/** What decides which agent it is, and what it may use. */
function agent(command: Command): Command {
  return stored(command)
    .option('--config <file>', 'module whose default export is a harness or its options; default: thinharness.config.*')
    .option(
      '--model <name>',
      'such as anthropic:claude-sonnet-5; default: $THINHARNESS_MODEL, else by the key that is set',
    )
    .option('--root <folder>', 'folder that the tools work in; default: the working folder')
    .option('--tools <names>', 'built-in tools: read,write,edit,search,list,glob')
    .option('--yes', 'do not ask before a tool changes something')
    .option('--max-requests <count>', 'end after so many requests to the model', wholeNumber)
    .option('--max-cost <dollars>', 'never spend more', positive)
    .option('--output <file>', 'JSON Schema of the answer')
}

function examples(...lines: readonly string[]): string {
  return `\nExamples:\n${lines.map((line) => `  $ thinharness ${line}`).join('\n')}`
}

function wholeNumber(text: string): number {
  if (/^\d+$/.test(text)) return Number(text)
  throw new InvalidArgumentError('Expected a whole number.')
}

function positive(text: string): number {
  if (Number(text) > 0) return Number(text)
  throw new InvalidArgumentError('Expected a number above 0.')
}
