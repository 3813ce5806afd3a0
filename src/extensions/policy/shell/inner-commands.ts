import { startingWords } from './starting-options.js'
import { UNKNOWN_WORDS } from './word.js'
import type { ShellWord } from './word.js'

/** A command that another one starts: a list of words, or text for a shell. */
export interface InnerCommand {
  readonly words: readonly ShellWord[]
  readonly script: string | null
  /** Indexes of the words that say which command it is. */
  readonly at: readonly number[]
}

/** The commands that a command starts, as far as its words say. */
export interface InnerCommands {
  readonly commands: readonly InnerCommand[]
  readonly unclear: string | null
}

const NONE: InnerCommands = { commands: [], unclear: null }
const HIDDEN = 'starts a command that its words do not show'

/** The commands that a command starts; its program is the first word. */
export function innerCommands(words: readonly ShellWord[]): InnerCommands {
  const name = programName(words[0])
  if (name === null) return NONE
  const doubt = builtinDoubt(name, words.slice(1))
  if (doubt !== null) return { commands: [], unclear: doubt }
  if (name === 'eval') return joinedFrom(words, 1)
  if (name === 'trap') return trapCommands(words)
  if (name === 'find') return findCommands(words)
  if (SHELLS.has(name)) return ofShell(words)
  const launcher = launcherOf(name, words)
  if (launcher !== undefined) return launchedCommands(words, launcher)
  const commands = startingWords(name, words).map((at) => ({ words: [{ ...UNKNOWN_WORDS }], script: null, at: [at] }))
  return { commands, unclear: null }
}

/** Programs that are in many folders under many names. */
const UNKNOWN_LAUNCHER = /^(?:ld(?:-[\w.-]+)?\.so[\d.]*|ld-musl-[\w.-]+|qemu-[\w.-]+)$/

function launcherOf(name: string, words: readonly ShellWord[]): Launcher | undefined {
  const known = LAUNCHERS.get(name)
  if (known !== undefined) return known
  if (UNKNOWN_LAUNCHER.test(name)) return { isUnknown: true }
  const subcommands = SUBCOMMANDS.get(name)
  if (subcommands === undefined) return undefined
  const [, first] = words
  const operands =
    first?.isFixed === true && Object.hasOwn(subcommands, first.text) ? subcommands[first.text] : undefined
  if (operands !== undefined) return { operands }
  const hasOptions = first?.text.startsWith('-') === true
  return hasOptions && words.some(({ text }) => Object.hasOwn(subcommands, text)) ? { isUnknown: true } : undefined
}

/** Name of a program without its folder; null if it is not fixed. */
export function programName(word: ShellWord | undefined): string | null {
  if (word?.isFixed !== true) return null
  return word.text.slice(word.text.lastIndexOf('/') + 1).toLowerCase()
}

/** A program that runs the command after its own options. */
function launchedCommands(words: readonly ShellWord[], launcher: Launcher): InnerCommands {
  let at = launcher.isUnknown === true ? null : afterOptions(words, 1, launcher)
  if (at === null) return commandsAnywhere(words)
  if (at === 'none') return NONE
  if (launcher.assignments === true) while (words[at]?.text.match(/^\w+\+?=/)) at++
  for (let left = launcher.operands ?? 0; left > 0; left--) {
    if (words[at]?.isFixed === false) return commandsAnywhere(words)
    at++
  }
  if ((launcher.operands ?? 0) > 0 && words[at]?.text === '--') at++
  if (at >= words.length) return launcher.startsShell === true ? { commands: [], unclear: HIDDEN } : NONE
  const own = words.slice(at)
  return ofWords(launcher.appends === true ? [...own, { ...UNKNOWN_WORDS }] : own, [at])
}

function ofWords(words: readonly ShellWord[], at: readonly number[]): InnerCommands {
  return {
    commands: [{ words, script: null, at }],
    unclear: words[0]?.isFixed === true ? null : HIDDEN,
  }
}

/** The index after the options; `none` if the options say that nothing is started, null if they are not known. */
function afterOptions(words: readonly ShellWord[], from: number, launcher: Launcher): number | 'none' | null {
  for (let at = from; at < words.length; at++) {
    const word = words[at]
    if (word === undefined || !word.isFixed) return null
    const { text } = word
    if (text === '--') return at + 1
    if (!/^[-+]./.test(text)) return at
    if (text.startsWith('+')) return null
    const kind = optionKind(text, launcher)
    if (kind === 'unknown') return null
    if (kind === 'stops') return 'none'
    if (kind === 'with-value') {
      if (words[at + 1]?.isFixed === false) return null
      at++
    }
  }
  return words.length
}

function optionKind(text: string, launcher: Launcher): 'alone' | 'with-value' | 'stops' | 'unknown' {
  const { flags = '', values = '', long = [], stops = '', numeric } = launcher
  if (text.startsWith('--')) {
    const [name = '', value] = text.slice(2).split('=', 2)
    const known = long.find((each) => each === name || each === `${name}=`)
    if (known === undefined) return 'unknown'
    return known.endsWith('=') && value === undefined ? 'with-value' : 'alone'
  }
  if (numeric === true && /^-\d+$/.test(text)) return 'alone'
  for (let index = 1; index < text.length; index++) {
    const letter = text[index] ?? ''
    if (stops.includes(letter)) return 'stops'
    if (values.includes(letter)) return index === text.length - 1 ? 'with-value' : 'alone'
    if (!flags.includes(letter)) return 'unknown'
  }
  return 'alone'
}

/** Words that a shell reads again as text. */
function joinedFrom(words: readonly ShellWord[], from: number): InnerCommands {
  const own = words.slice(from)
  if (own.length === 0) return NONE
  if (own.some(({ isFixed }) => !isFixed)) return { commands: [], unclear: HIDDEN }
  const script = own.map(({ text }) => text).join(' ')
  return { commands: [{ words: own, script, at: own.map((_, index) => from + index) }], unclear: null }
}

/** `bash -c 'text'`. A shell without a script reads commands from its input. */
function ofShell(words: readonly ShellWord[]): InnerCommands {
  let takesText = false
  for (let at = 1; at < words.length; at++) {
    const word = words[at]
    if (word === undefined || !word.isFixed) return { commands: [], unclear: HIDDEN }
    const { text } = word
    if (text === '--version' || text === '--help') return NONE
    if (/^[-+]./.test(text) && text !== '--') {
      if (/^-[a-zA-Z]*s/.test(text) || /^--(?:rcfile|init-file)/.test(text)) return { commands: [], unclear: HIDDEN }
      if (/^-[a-zA-Z]*c/.test(text)) takesText = true
      if (/^[-+][a-zA-Z]*[oO]$/.test(text)) at++
      continue
    }
    const operand = text === '--' || text === '-' ? at + 1 : at
    if (!takesText) return words[operand] === undefined ? { commands: [], unclear: HIDDEN } : NONE
    const script = words[operand]
    if (script === undefined) return NONE
    if (!script.isFixed) return { commands: [], unclear: HIDDEN }
    return { commands: [{ words: [script], script: script.text, at: [operand] }], unclear: null }
  }
  return { commands: [], unclear: HIDDEN }
}

/** `trap 'text' EXIT`. */
function trapCommands(words: readonly ShellWord[]): InnerCommands {
  const at = words[1]?.text === '--' ? 2 : 1
  const action = words[at]
  if (action === undefined || words.length === at + 1 || /^(?:-.*|\d*)$/.test(action.text)) return NONE
  if (!action.isFixed) return { commands: [], unclear: HIDDEN }
  return { commands: [{ words: [action], script: action.text, at: [at] }], unclear: null }
}

const EXECUTING = new Set(['-exec', '-execdir', '-ok', '-okdir'])

/** `find … -exec command {} ;`. */
function findCommands(words: readonly ShellWord[]): InnerCommands {
  const commands: InnerCommand[] = []
  let unclear: string | null = null
  for (let at = 1; at < words.length; at++) {
    const word = words[at]
    if (word?.hasVariable === true) unclear = HIDDEN
    if (word === undefined || !EXECUTING.has(word.text)) continue
    const rest = words.slice(at + 1)
    const end = rest.findIndex(({ text }, index) => text === ';' || (text === '+' && rest[index - 1]?.text === '{}'))
    const own = (end === -1 ? rest : rest.slice(0, end)).map((each) =>
      each.text.includes('{}') ? { ...each, isFixed: false, hasVariable: true, prefix: '', suffix: '' } : each,
    )
    if (own[0]?.isFixed !== true) unclear = HIDDEN
    commands.push({ words: own, script: null, at: [at + 1] })
    at += own.length
  }
  return { commands, unclear }
}

/** Options that are not known: any of the words may be the program. */
function commandsAnywhere(words: readonly ShellWord[]): InnerCommands {
  const commands = words.slice(1).map((_, index) => ({ words: words.slice(index + 1), script: null, at: [index + 1] }))
  return { commands: commands.slice(0, 20), unclear: HIDDEN }
}

const REDEFINES = 'gives a new meaning to a name'
const EVALUATES = 'has a word that the shell evaluates again'

/** Builtins after which a name can mean another program, or that run text of their own. */
const REDEFINING = new Set([
  'alias',
  'hash',
  'enable',
  'compgen',
  'complete',
  'bind',
  'fc',
  'mapfile',
  'readarray',
  'let',
])
/** Builtins that take names of variables: the subscript of a name is evaluated. */
const NAMING = new Set(['read', 'unset', 'export', 'readonly', 'declare', 'typeset', 'local', 'wait', 'getopts'])

/** The reason why a builtin can do more than its words say; null if it cannot, or if it is none of these. */
function builtinDoubt(name: string, args: readonly ShellWord[]): string | null {
  if (REDEFINING.has(name)) return REDEFINES
  if (NAMING.has(name)) return args.every((arg) => isPlainName(name, arg)) ? null : EVALUATES
  if (name === 'printf') return args[0] === undefined || isPlain(args[0]) ? null : EVALUATES
  if (name === 'test' || name === '[') return args.every(isPlain) ? null : EVALUATES
  return null
}

/** `declare -i` makes a variable evaluate the assigned text. */
function isPlainName(builtin: string, { isFixed, text, prefix }: ShellWord): boolean {
  const declares = builtin === 'declare' || builtin === 'typeset' || builtin === 'local'
  if (declares && /^[-+].*[inA-Z]/.test(text)) return false
  const name = isFixed ? text : prefix
  if (!isFixed && !/^\w+\+?=/.test(name)) return false
  return !name.replace(/=[^]*$/, '').includes('[')
}

/** No name of a variable follows it: `-v` and `-R` take one. */
function isPlain({ isFixed, text }: ShellWord): boolean {
  return isFixed && !/^-[vR]/.test(text)
}

/** How a program that runs another one reads its own words. */
export interface Launcher {
  /** Letters of options without a value. */
  readonly flags?: string
  /** Letters of options with a value. */
  readonly values?: string
  /** Letters of options with which nothing is started. */
  readonly stops?: string
  /** Long options; one with a value ends in `=`. */
  readonly long?: readonly string[]
  /** `-10` is an option. */
  readonly numeric?: boolean
  /** Number of words between the options and the command. */
  readonly operands?: number
  /** `NAME=value` may stand before the command. */
  readonly assignments?: boolean
  /** More words are added to the command. */
  readonly appends?: boolean
  /** Without a command, it starts a shell. */
  readonly startsShell?: boolean
  /** Its options are not read here: any word may be the program, so that a person is asked. */
  readonly isUnknown?: boolean
}

const OTHERS =
  'abduco ansible arch-chroot at authbind autossh aws-vault batch box64 bpftrace builtin bunx busybox bwrap caffeinate capsh ' +
  'catatonit catchsegv ccache cgexec chamber choom chpst chroot chronic chrt coreutils cpulimit crictl datefudge ' +
  'daemonize dbus-launch dbus-run-session distcc doas dotenv dotenvx dtach dtrace dtruss dumb-init eatmydata entr envchain envdir ' +
  'envuidgid expect faketime fakechroot fakeroot fakeroot-ng firejail flock fswatch gdb genv gnice gnohup gosu gstdbuf gtime gtimeout ' +
  'gxargs heaptrack honcho hyperfine i386 icecc ifne ionice ktrace lckdo linux32 linux64 lldb ltrace lxc-attach mispipe mosh newgrp nocache ' +
  'nocorrect nodemon noglob npx nsenter numactl osascript parallel pee perf pivot_root pkexec pnpx prlimit proot proxychains proxychains4 ' +
  'pseudo reflex rlwrap rr rsh run-parts run0 runcon runit runuser s6-envdir s6-setuidgid sandbox-exec sccache schedtool schroot screen ' +
  'script scriptlive sem setarch setlock setpriv setsid setuidgid sg softlimit ssh-agent sshpass start-stop-daemon strace su su-exec ' +
  'switch_root systemd-cat systemd-inhibit systemd-nspawn systemd-run taskset time timelimit tini tmux torify torsocks toybox trickle truss ' +
  'ts tsocks uclampset uname26 unbuffer unshare valgrind watch watchexec wine x86_64 xterm xvfb-run zrun'

/** Subcommands that run the command after so many words, themselves included. */
const SUBCOMMANDS: ReadonlyMap<string, Readonly<Record<string, number>>> = new Map<
  string,
  Readonly<Record<string, number>>
>([
  ...each('npm pnpm yarn', { exec: 1, x: 1, dlx: 1, explore: 2 }),
  ...each('asdf bundle fnm mise nvm pyenv rbenv volta', { exec: 1, x: 1, run: 1 }),
  ...each('conda doppler hatch mamba micromamba op pdm pipenv pipx poetry rye uv', { run: 1 }),
  ...each('docker kubectl lxc nerdctl podman', { exec: 2, run: 2, debug: 2 }),
  ...each('direnv', { exec: 2 }),
  ...each('ip', { netns: 3, vrf: 3 }),
  ...each('machinectl', { shell: 2 }),
  ...each('nix', { run: 1, shell: 1, develop: 1 }),
])

function each<T>(names: string, value: T): readonly (readonly [string, T])[] {
  return names.split(' ').map((name) => [name, value])
}

/** Programs and builtins that run the command in their arguments. The options of the usual ones are known. */
export const LAUNCHERS: ReadonlyMap<string, Launcher> = new Map<string, Launcher>([
  ...OTHERS.split(' ').map((name): [string, Launcher] => [name, { isUnknown: true }]),
  [
    'sudo',
    {
      flags: 'AbBEHikKnPSs',
      values: 'CDghpRrtTuU',
      stops: 'eKlVv',
      long: longOptions(
        'askpass background preserve-env set-home login non-interactive preserve-groups stdin shell close-from= chdir= ' +
          'group= host= prompt= chroot= role= type= user=',
      ),
      assignments: true,
      startsShell: true,
    },
  ],
  [
    'env',
    {
      flags: 'i0v',
      values: 'uC',
      long: longOptions('ignore-environment null unset= chdir= debug'),
      assignments: true,
    },
  ],
  ['nohup', {}],
  ['arch', {}],
  ['nice', { values: 'n', long: ['adjustment='], numeric: true }],
  [
    'timeout',
    {
      flags: 'fpv',
      values: 'ks',
      long: longOptions('foreground preserve-status verbose kill-after= signal='),
      operands: 1,
    },
  ],
  ['time', { flags: 'apvq', values: 'fo', long: longOptions('append format= output= portability quiet verbose') }],
  ['stdbuf', { values: 'ioe', long: longOptions('input= output= error=') }],
  [
    'xargs',
    {
      flags: '0oprtx',
      values: 'adEILnPs',
      long: longOptions(
        'null open-tty interactive no-run-if-empty verbose exit arg-file= delimiter= show-limits max-lines max-args= ' +
          'max-procs= max-chars= process-slot-var= replace eof',
      ),
      appends: true,
    },
  ],
  ['command', { flags: 'p', stops: 'vV' }],
  ['exec', { flags: 'cl', values: 'a' }],
])

function longOptions(names: string): readonly string[] {
  return names.split(' ')
}

const SHELLS: ReadonlySet<string> = new Set(['sh', 'bash', 'dash', 'ash', 'zsh', 'ksh', 'mksh', 'fish', 'rbash'])
