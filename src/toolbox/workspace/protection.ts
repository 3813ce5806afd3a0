import { parseIgnoreFile } from './ignore-rules.js'
import type { IgnoreRule } from './ignore-rules.js'

/** Files that tools may not read or write. Each list is in the syntax of `.gitignore`; names match whatever their case. */
export interface ProtectedFiles {
  readonly read: readonly string[]
  readonly write: readonly string[]
}

/** Rules with `!` come first: ripgrep is given the rules after them. */
const SECRETS = [
  ...['*.env', '.env*', '!.env.example', '!.env.sample', '!.env.template', '!.env.dist'],
  ...['*.pem', '*.key', '*.p8', '*.p12', '*.pfx', '*.jks', '*.keystore', '*.ppk', '*.kdbx'],
  ...['id_rsa', 'id_dsa', 'id_ecdsa', 'id_ecdsa_sk', 'id_ed25519', 'id_ed25519_sk', '.ssh', '.gnupg'],
  ...['.netrc', '_netrc', '.npmrc', '.pypirc', '.pgpass', '.my.cnf', '.git-credentials', '**/.config/git/credentials'],
  ...['.htpasswd', '.vault-token', '.boto', '.s3cfg', '*.tfstate', '*.tfstate.backup', '**/.terraform.d/credentials*'],
  ...['.aws', '.azure', '.kube', 'kubeconfig', '*.kubeconfig', '**/.config/gcloud', '**/.config/gh'],
  ...['.dockercfg', '**/.docker/config.json', '**/.cargo/credentials*', '**/.gem/credentials', '**/.m2/settings*.xml'],
  ...['client_secret*.json', 'service-account*.json', 'service_account*.json', 'application_default_credentials.json'],
  ...['.bash_history', '.zsh_history', '.psql_history', '.mysql_history', '.python_history', '.node_repl_history'],
]

/** Read by a shell, git, an editor or an agent, which then run what they say. */
const PROGRAMS = [
  ...['.git', '.gitconfig', '.gitmodules', '**/.config/git', '.husky', '.direnv'],
  ...['.bashrc', '.bash_profile', '.bash_login', '.bash_logout', '.bash_aliases', '.profile', '.kshrc', '.cshrc'],
  ...['.tcshrc', '.login', '.zshrc', '.zshenv', '.zprofile', '.zlogin', '.zlogout', '**/.config/fish', '*profile.ps1'],
  ...['.xprofile', '.xinitrc', '**/.config/autostart', '**/.config/systemd', 'LaunchAgents', '.ripgreprc'],
  ...['.mcp.json', '.cursor', '.codex', '.gemini', '.windsurf', '.claude.json', '**/.claude/settings*.json'],
  ...['**/.claude/commands', '**/.claude/agents', '**/.claude/hooks'],
  ...['.vscode', '.idea', '.zed', '.fleet', '.devcontainer', '*.code-workspace'],
  ...['.vim', '.vimrc', '.exrc', '.nvimrc', '.nvim.lua', '.emacs', '.emacs.d', '.dir-locals.el'],
  ...['.yarnrc', '.yarnrc.yml', '.pnpmfile.cjs'],
]

/**
 * The files that are protected by default. Reading: files that contain secrets, such as `.env`, private keys and the
 * credentials of programs. Writing: the same, and files that make a program run something later, such as `.git`, the start-up
 * files of shells, and the settings of editors.
 */
export const PROTECTED_FILES: ProtectedFiles = { read: SECRETS, write: [...SECRETS, ...PROGRAMS] }

/** Folders whose rule is remembered. */
const MAX_FOLDERS = 10_000

interface Rule {
  /** As written. */
  readonly glob: string
  readonly path: IgnoreRule
  /** The last name of the glob alone: most names need no more than this. */
  readonly name: IgnoreRule | undefined
}

/** Finds the rule that protects a path. */
export class Protection {
  /** Globs that no later rule undoes, without a leading `!`. */
  readonly exclusions: readonly string[]
  readonly #rules: readonly Rule[]
  /** The rule of a folder or of one above it, by path. */
  readonly #folders = new Map<string, string | undefined>()

  constructor(globs: readonly string[]) {
    this.exclusions = globs.slice(globs.findLastIndex((glob) => glob.startsWith('!')) + 1)
    this.#rules = globs.flatMap(protectionRules)
  }

  /**
   * The glob that protects a path or a folder above it, as written; `undefined` if there is none. Does no I/O.
   * @param names From the root to the file or folder.
   */
  ruleOf(names: readonly string[]): string | undefined {
    if (this.#rules.length === 0 || names.length === 0) return undefined
    const folded = names.map(foldedName)
    return this.#ruleAbove(folded.slice(0, -1)) ?? this.#ruleAt(folded, false)
  }

  #ruleAbove(folder: readonly string[]): string | undefined {
    if (folder.length === 0) return undefined
    const key = folder.join('/')
    if (this.#folders.has(key)) return this.#folders.get(key)
    const rule = this.#ruleAbove(folder.slice(0, -1)) ?? this.#ruleAt(folder, true)
    if (this.#folders.size >= MAX_FOLDERS) this.#folders.clear()
    this.#folders.set(key, rule)
    return rule
  }

  #ruleAt(names: readonly string[], isFolder: boolean): string | undefined {
    const last = names.slice(-1)
    const rule = this.#rules.findLast(({ path, name }) => {
      return (isFolder || !path.foldersOnly) && name?.matches(last) !== false && path.matches(names)
    })
    return rule === undefined || rule.path.negated ? undefined : rule.glob
  }
}

function protectionRules(glob: string): readonly Rule[] {
  // A leading `#` would start a comment.
  const folded = foldedName(glob).replace(/^#/, '\\#')
  const last = folded.includes('{') ? '' : folded.replace(/\/$/, '').replace(/^.*\/|^!/, '')
  const [name] = parseIgnoreFile(last)
  return parseIgnoreFile(folded).map((path) => ({ glob, path, name }))
}

/**
 * A name as the most forgiving file system compares it: case, compatible characters and invisible ones make no difference.
 */
function foldedName(name: string): string {
  if (/^[ -~]*$/.test(name)) return name.toLowerCase()
  const visible = name.normalize('NFKC').replace(/\p{Default_Ignorable_Code_Point}/gu, '')
  return visible.toUpperCase().toLowerCase().normalize('NFKC')
}
