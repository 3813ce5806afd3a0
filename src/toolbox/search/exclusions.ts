import { ignoreVerdict, parseIgnoreFile } from '../workspace/ignore-rules.js'

/** What the host keeps out of searches. */
export interface Exclusions {
  /** Without a leading `!`. */
  readonly globs: readonly string[]
  /** Whether a file, by its names from the root, is excluded itself or through a folder above it. */
  excludes(segments: readonly string[]): boolean
}

/** @param globs In the syntax of gitignore, as ripgrep's `--glob` takes them; a leading `!` changes nothing. */
export function exclusionsOf(globs: readonly string[]): Exclusions {
  const plain = globs.map((glob) => glob.replace(/^!/, ''))
  if (plain.length === 0) return { globs: plain, excludes: () => false }
  // A `#` at the front would make a comment of it in an ignore file.
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
