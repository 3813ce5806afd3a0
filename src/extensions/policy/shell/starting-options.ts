import type { ShellWord } from './word.js'

/** The words of a program with which it starts another program, or runs text as a program. */
interface StartingWords {
  /** Long options, without dashes; an abbreviation counts too. */
  readonly long?: string
  /** Letters of options, also in a group: `-xI prog`. */
  readonly letters?: string
  /** Whole words. */
  readonly words?: RegExp
  /** The first word. */
  readonly first?: RegExp
}

const EDITOR: StartingWords = { long: 'cmd remote-expr remote-send server', letters: 'cSsul', words: /^\+/ }
const COMPILER: StartingWords = { words: /^(?:-wrapper|-B|-fplugin|--?specs|-Xclang|@)/ }
const SSH: StartingWords = { letters: 'oFSb', words: /^(?:Proxy|Local)Command/i }
const SQL: StartingWords = {
  words: /\\[!goiw|]|\b(?:program|system)\b|\.(?:shell|system|load)\b|load_extension|^--?(?:cmd|init)$/i,
}
const AWK: StartingWords = { long: 'file exec load include', letters: 'fEl', words: /system|(?:^|[^|])\|(?:[^|]|$)/ }
const SED: StartingWords = { words: /(?:^|[\s;{}\d$!/])e(?:[\s;]|$)|s([^\w\s]).*\1.*\1\w*e/ }
const MAKE: StartingWords = {
  long: 'eval file makefile directory include-dir',
  letters: 'fECI',
  words: /^(?:SHELL|\.SHELLFLAGS|MAKEFLAGS|MAKEFILES)\s*[:?+!]*=|=.*\$[({]/,
}
const TAR: StartingWords = {
  long: 'to-command use-compress-program checkpoint-action info-script new-volume-script rmt-command rsh-command',
  letters: 'IF',
  words: /^[^/]+:/,
  first: /^[a-zA-Z]*[IF]/,
}
const FD: StartingWords = { long: 'exec exec-batch', letters: 'xX' }
const APT: StartingWords = { long: 'option config-file', letters: 'oc' }

/** Known ones of programs that are often allowed with any words. */
const STARTING: ReadonlyMap<string, StartingWords> = new Map<string, StartingWords>([
  ['rg', { long: 'pre hostname-bin' }],
  ...named('ag ack', { long: 'pager ackrc' }),
  ...named('fd fdfind', FD),
  ...named('sort gsort', { long: 'compress-program' }),
  ...named('split gsplit', { long: 'filter' }),
  ...named('tar gtar bsdtar', TAR),
  ['cpio', { long: 'rsh-command to-command' }],
  ['zip', { long: 'unzip-command', words: /^-[a-zA-Z]*TT/ }],
  ['rsync', { long: 'rsh rsync-path', letters: 'e' }],
  ...named('ssh scp sftp', SSH),
  ['wget', { long: 'use-askpass execute config', letters: 'e' }],
  ['man', { long: 'pager html browser preprocessor', letters: 'PHC' }],
  ...named('less more', { words: /^\+/ }),
  ...named('vi vim nvim view ex', EDITOR),
  ['emacs', { words: /^--?(?:eval|execute|batch|funcall|load|script|f|l)/ }],
  ...named('awk gawk mawk nawk', AWK),
  ...named('sed gsed', SED),
  ...named('make gmake', MAKE),
  ['go', { words: /^--?(?:exec|toolexec|vettool|overlay|modfile)(?:=|$)/, first: /^(?:generate|run|tool|env|-)/ }],
  ['cargo', { long: 'config', letters: 'Z', first: /^(?:\+|run$)/ }],
  ['tcpdump', { letters: 'z' }],
  ['openssl', { words: /^-(?:engine|provider|provider-path|config)$/ }],
  ['gpg', { long: 'photo-viewer exec-path agent-program dirmngr-program options' }],
  ...named('apt apt-get aptitude', APT),
  ['dpkg', { words: /^--(?:pre|post|status)-\w+/ }],
  ...named('psql mysql mariadb sqlite3', SQL),
  ...named('gcc g++ cc c++ clang clang++', COMPILER),
  ['pytest', { long: 'config-file override-ini', letters: 'pco' }],
  [
    'jest',
    { long: 'config globalSetup globalTeardown runner reporters transform setupFiles testEnvironment', letters: 'c' },
  ],
  ['eslint', { long: 'config rulesdir plugin parser format', letters: 'cf' }],
  ...named('npm pnpm yarn bun', {
    long: 'script-shell shell call node-options prefix userconfig globalconfig git editor dir cwd config-dir pnpmfile',
    letters: 'cC',
    first: /^(?:c|config|set|pkg|edit|init|create)$/,
  }),
])

function named(names: string, words: StartingWords): readonly (readonly [string, StartingWords])[] {
  return names.split(' ').map((name) => [name, words])
}

const GIT_GLOBAL: StartingWords = { long: 'config-env exec-path git-dir work-tree paginate', letters: 'cp' }
const GIT_ANYWHERE: StartingWords = {
  long: 'ext-diff open-files-in-pager ext-grep extcmd upload-pack receive-pack exec template',
  words: /^ext::/,
}
const GIT_PROGRAMS =
  /^(?:difftool|mergetool|filter-branch|filter-repo|instaweb|daemon|send-email|web--browse|credential|hook|config|maintenance)$/
const GIT_SUBCOMMANDS: Readonly<Record<string, StartingWords>> = {
  bisect: { words: /^run$/ },
  submodule: { words: /^(?:foreach|update|add)$/ },
  rebase: { letters: 'xi', long: 'interactive' },
  clone: { letters: 'uc', long: 'config' },
  'ls-remote': { letters: 'u' },
  grep: { letters: 'O' },
}

/**
 * Indexes of the words of a command that start another program, or may do so; the first word is its own program. Values of variables
 * and names of files are not known.
 */
export function startingWords(name: string, words: readonly ShellWord[]): readonly number[] {
  if (name === 'git') return gitStartingWords(words)
  const known = STARTING.get(name)
  if (known === undefined) return []
  // What follows goes to the script of a package.
  const end = name === 'npm' || name === 'pnpm' ? words.findIndex(({ text }) => text === '--') : -1
  return indexesOf(words, 1, end === -1 ? words.length : end, [known])
}

function gitStartingWords(words: readonly ShellWord[]): readonly number[] {
  let at = 1
  while (words[at]?.text.startsWith('-') === true) at += words[at]?.text === '-C' ? 2 : 1
  const subcommand = words[at]?.text ?? ''
  const special = Object.hasOwn(GIT_SUBCOMMANDS, subcommand) ? GIT_SUBCOMMANDS[subcommand] : undefined
  return [
    ...indexesOf(words, 1, at, [GIT_GLOBAL]),
    ...(GIT_PROGRAMS.test(subcommand) ? [at] : []),
    ...indexesOf(words, at + 1, words.length, special === undefined ? [GIT_ANYWHERE] : [GIT_ANYWHERE, special]),
  ]
}

function indexesOf(words: readonly ShellWord[], from: number, to: number, known: readonly StartingWords[]): number[] {
  return words.flatMap((word, index) => {
    const isAmong = index >= from && index < to
    return isAmong && known.some((each) => wordStarts(each, word, index === from)) ? [index] : []
  })
}

function wordStarts(
  { long = '', letters = '', words, first }: StartingWords,
  word: ShellWord,
  isFirst: boolean,
): boolean {
  if (!word.isFixed) return word.prefix.startsWith('-')
  const { text } = word
  if (words?.test(text) === true || (isFirst && first?.test(text) === true)) return true
  const name = /^--([\w-]+)/.exec(text)?.[1]
  if (name !== undefined) return long.split(' ').some((each) => each !== '' && each.startsWith(name))
  const group = /^-([a-zA-Z0-9]+)/.exec(text)?.[1] ?? ''
  return Array.from(letters).some((letter) => group.includes(letter))
}
