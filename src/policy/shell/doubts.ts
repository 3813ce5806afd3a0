import type { SyntaxNode } from 'unbash'

const SUBSTITUTION = 'has a substitution'
const REDIRECTION = 'has a redirection'
const ARITHMETIC = 'has arithmetic'
const ARRAY = 'has an array'
const RARE = 'has a rare form of quotes or patterns'
const REDEFINITION = 'gives a new meaning to a name'

/** Syntax that can do more than the commands in it say. */
const DOUBTS: Partial<Record<SyntaxNode['type'], string>> = {
  CommandExpansion: SUBSTITUTION,
  ProcessSubstitution: SUBSTITUTION,
  ArithmeticCommandExpansion: SUBSTITUTION,
  Redirect: REDIRECTION,
  HereDoc: REDIRECTION,
  HereString: REDIRECTION,
  ArithmeticExpansion: ARITHMETIC,
  ArithmeticCommand: ARITHMETIC,
  ArithmeticFor: ARITHMETIC,
  ArrayValue: ARRAY,
  ExtendedGlob: RARE,
  LocaleString: RARE,
  Function: REDEFINITION,
  Coproc: REDEFINITION,
}

const EVALUATING_TESTS: ReadonlySet<string> = new Set(['-v', '-R', '-eq', '-ne', '-lt', '-le', '-gt', '-ge'])

/**
 * The reason why a piece of shell syntax can do more than the commands in it say; null if it cannot. The shell evaluates
 * arithmetic, subscripts and some expansions again, so that text in them can be a command.
 */
export function doubtAbout(node: SyntaxNode): string | null {
  if (node.type === 'ParameterExpansion') {
    const isPlain = node.operation === undefined && node.index === undefined && node.prefix === undefined
    return isPlain ? null : 'has an expansion with an operator'
  }
  if (node.type === 'Assignment') return node.index === undefined ? null : ARRAY
  if (node.type === 'TestUnary' || node.type === 'TestBinary')
    return EVALUATING_TESTS.has(node.operator) ? ARITHMETIC : null
  return DOUBTS[node.type] ?? null
}
