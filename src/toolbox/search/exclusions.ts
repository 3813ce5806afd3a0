import { ignoreVerdict, parseIgnoreFile } from '../workspace/ignore-rules.js'

/** Files that the host excludes from searches. */
export interface Exclusions {
  /** Without a leading `!`. */
  readonly globs: readonly string[]
  /** True if a file, given by its names from the root, or a folder above it is excluded. */
  excludes(segments: readonly string[]): boolean
}

/** @param globs In the syntax of gitignore, as ripgrep's `--glob` takes them; a leading `!` changes nothing. */
export function exclusionsOf(globs: readonly string[]): Exclusions {
  const plain = globs.map((glob) => glob.replace(/^!/, ''))
  if (plain.length === 0) return { globs: plain, excludes: () => false }
  // In an ignore file, a leading `#` would start a comment.
  const rules = parseIgnoreFile(plain.map((glob) => glob.replace(/^[#!]/, '\\$&')).join('\n'))
  const scope = { parent: undefined, depth: 0, rules: { '.ignore': rules } }
  return {
    globs: plain,
    excludes: (segments) =>
      segments.some((_, index) => {
        const isFile = index === segments.length - 1
        return ignoreVerdict(scope, segments.slice(0, index + 1), !isFile) === 'ignored'
      }),
  }
}
