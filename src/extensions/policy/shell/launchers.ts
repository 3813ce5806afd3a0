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
  'builtin busybox bwrap caffeinate capsh catchsegv cgexec chroot chronic chrt daemonize dbus-run-session doas entr expect ' +
  'fakeroot firejail flock gdb ionice ltrace nocache nsenter numactl parallel perf pkexec prlimit proot rlwrap runuser script ' +
  'setarch setpriv setsid ssh-agent start-stop-daemon strace su systemd-run taskset toybox ts unbuffer unshare valgrind watch ' +
  'xvfb-run'

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

export const SHELLS: ReadonlySet<string> = new Set(['sh', 'bash', 'dash', 'ash', 'zsh', 'ksh', 'mksh', 'fish', 'rbash'])
