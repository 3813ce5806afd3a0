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
  /** The words are joined and given to a shell. */
  readonly joins?: boolean
  /** More words are added to the command. */
  readonly appends?: boolean
  /** Without a command, it starts a shell. */
  readonly startsShell?: boolean
  /** Its options are many: any word may be the program. */
  readonly isUnknown?: boolean
}

const SUDO: Launcher = {
  flags: 'AbBEHikKnPSs',
  values: 'CDghpRrtTuU',
  stops: 'eKlVv',
  long: [
    ...['askpass', 'background', 'preserve-env', 'set-home', 'login', 'non-interactive', 'preserve-groups', 'stdin'],
    ...['shell', 'close-from=', 'chdir=', 'group=', 'host=', 'prompt=', 'chroot=', 'role=', 'type=', 'user='],
  ],
  assignments: true,
  startsShell: true,
}

/** Programs and builtins that run the command in their arguments. */
export const LAUNCHERS: ReadonlyMap<string, Launcher> = new Map<string, Launcher>([
  ['sudo', SUDO],
  ['doas', { flags: 'Lns', values: 'aCu', startsShell: true }],
  ['pkexec', { long: ['disable-internal-agent', 'keep-cwd', 'user='] }],
  [
    'env',
    {
      flags: 'i0v',
      values: 'uC',
      long: ['ignore-environment', 'null', 'unset=', 'chdir=', 'debug'],
      assignments: true,
    },
  ],
  ['nohup', {}],
  ['nice', { values: 'n', long: ['adjustment='], numeric: true }],
  ['ionice', { flags: 't', values: 'cn', stops: 'pPu', long: ['class=', 'classdata=', 'ignore'] }],
  [
    'timeout',
    {
      flags: 'fpv',
      values: 'ks',
      long: ['foreground', 'preserve-status', 'verbose', 'kill-after=', 'signal='],
      operands: 1,
    },
  ],
  ['time', { flags: 'apvq', values: 'fo', long: ['append', 'format=', 'output=', 'portability', 'quiet', 'verbose'] }],
  ['stdbuf', { values: 'ioe', long: ['input=', 'output=', 'error='] }],
  ['setsid', { flags: 'cfw', long: ['ctty', 'fork', 'wait'] }],
  [
    'xargs',
    {
      flags: '0oprtx',
      values: 'adEILnPs',
      long: [
        ...[
          'null',
          'open-tty',
          'interactive',
          'no-run-if-empty',
          'verbose',
          'exit',
          'arg-file=',
          'delimiter=',
          'show-limits',
        ],
        ...['max-lines', 'max-args=', 'max-procs=', 'max-chars=', 'process-slot-var=', 'replace', 'eof'],
      ],
      appends: true,
    },
  ],
  ['command', { flags: 'p', stops: 'vV' }],
  ['builtin', {}],
  ['exec', { flags: 'cl', values: 'a' }],
  ['chroot', { long: ['userspec=', 'groups=', 'skip-chdir'], operands: 1, startsShell: true }],
  [
    'flock',
    { flags: 'senoFuxv', values: 'wE', long: ['shared', 'exclusive', 'nonblock', 'timeout=', 'wait='], operands: 1 },
  ],
  [
    'watch',
    {
      flags: 'bcegptwx',
      values: 'nq',
      long: ['interval=', 'differences', 'no-title', 'errexit', 'color'],
      joins: true,
    },
  ],
  ['chrt', { flags: 'abdfiorRv', values: 'TPD', operands: 1 }],
  ['taskset', { flags: 'ac', stops: 'p', operands: 1 }],
  ['strace', { flags: 'cCdDfFhiknqrtTvwxyzZ', values: 'abeEIoOpPsSuUX' }],
  ['busybox', { stops: 'h', long: ['list', 'help'] }],
  ['toybox', { long: ['long', 'help'] }],
  ['fakeroot', { flags: 'u', values: 'lsib' }],
  ['caffeinate', { flags: 'dimsu', values: 'tw' }],
  ['nocache', {}],
  ['unbuffer', { flags: 'p' }],
  ...[
    ...[
      'su',
      'runuser',
      'script',
      'unshare',
      'nsenter',
      'systemd-run',
      'parallel',
      'setpriv',
      'capsh',
      'start-stop-daemon',
    ],
    ...['bwrap', 'firejail', 'prlimit', 'numactl', 'setarch', 'ltrace', 'gdb', 'entr', 'xvfb-run', 'dbus-run-session'],
    ...[
      'daemonize',
      'proot',
      'expect',
      'rlwrap',
      'ssh-agent',
      'cgexec',
      'catchsegv',
      'perf',
      'valgrind',
      'chronic',
      'ts',
    ],
  ].map((name): [string, Launcher] => [name, { isUnknown: true }]),
])

export const SHELLS: ReadonlySet<string> = new Set(['sh', 'bash', 'dash', 'ash', 'zsh', 'ksh', 'mksh', 'fish', 'rbash'])
