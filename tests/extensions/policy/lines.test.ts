import fc from 'fast-check'
import { expect, test } from 'vitest'
import { explain } from 'thinharness/policy'
import type { Rule } from 'thinharness/policy'
import { rounds, timeLimit, times } from '../../support/length.js'

/** A line of shell, and the programs that it runs, whatever each of them answers. */
interface Line {
  readonly text: string
  readonly programs: readonly string[]
  /** Only commands, without anything that makes a line unclear. */
  readonly isPlain: boolean
}

const PROGRAMS = ['ls', 'cat', 'make', 'node', 'git'] as const

const quotes: readonly ((text: string) => string)[] = [
  (text) => text,
  (text) => `'${text}'`,
  (text) => `"${text}"`,
  (text) => `\\${text}`,
  (text) => `${text.slice(0, 1)}''${text.slice(1)}`,
  (text) => `$'${Array.from(text, (char) => `\\x${char.charCodeAt(0).toString(16)}`).join('')}'`,
  (text) => `${text.slice(0, 1)}\\\n${text.slice(1)}`,
]

const ARGUMENTS = ['', ' -l', ' "a; b"', " '$(x)'", ' *.md', ' "$HOME"', ' {a,b}', ' \\;', ' ~/a']

const commandArbitrary: fc.Arbitrary<Line> = fc
  .record({
    program: fc.constantFrom(...PROGRAMS),
    quote: fc.constantFrom(...quotes),
    rest: fc.array(fc.constantFrom(...ARGUMENTS), { maxLength: 2 }),
  })
  .map(({ program, quote, rest }) => ({
    text: quote(program) + rest.join(''),
    programs: [program],
    isPlain: true,
  }))

const joined =
  (joint: string) =>
  ([left, right]: readonly [Line, Line]) => ({
    text: left.text + joint + right.text,
    programs: [...left.programs, ...right.programs],
    isPlain: left.isPlain && right.isPlain,
  })

const within =
  (before: string, after: string, isPlain = true) =>
  (line: Line) => ({
    text: before + line.text + after,
    programs: line.programs,
    isPlain: line.isPlain && isPlain,
  })

/** Launchers are programs too. */
const started = (launcher: string, more: readonly string[]) => (line: Line) => ({
  text: launcher + line.text,
  programs: [...more, ...line.programs],
  isPlain: line.isPlain,
})

const { line: lineArbitrary } = fc.letrec<{ line: Line }>((tie) => ({
  line: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    commandArbitrary,
    ...[';', ' && ', ' || ', ' | ', ' |& ', ' & ', '\n', ' ;\n', ' # rm x\n', '&&\n'].map((joint) =>
      fc.tuple(commandArbitrary, tie('line')).map(([left, right]) => joined(joint)([left, right])),
    ),
    tie('line').map(within('( ', '\n)')),
    tie('line').map(within('{ ', '\n}')),
    tie('line').map(within('{ ! { ', '\n}\n}')),
    tie('line')
      .map(within('if ', '\nthen :; fi'))
      .map((line) => ({ ...line, programs: [...line.programs, ':'] })),
    tie('line').map(within('for f in a b; do ', '\ndone')),
    tie('line').map(within('case x in x) ', '\n;; esac')),
    tie('line')
      .map(within('while ', '\ndo break; done'))
      .map((line) => ({ ...line, programs: [...line.programs, 'break'] })),
    tie('line').map(within('f() { ', '\n}', false)),
    tie('line').map(within('x=$( ', '\n)', false)),
    tie('line').map(within('{ ', '\n} > out', false)),
    tie('line').map(within('{ ', '\n} 2>&1', false)),
    commandArbitrary.map(started('sudo -n ', ['sudo'])),
    commandArbitrary.map(started('timeout 5 ', ['timeout'])),
    commandArbitrary.map(started('env A=b nohup ', ['env', 'nohup'])),
    commandArbitrary.map(within('{ time -p ', '\n}')),
  ),
}))

const decide = (rules: readonly Rule[], command: string) => explain(rules, { tool: 'bash', args: { command } }).decision
const allowing = (programs: Iterable<string>): Rule[] =>
  Array.from(new Set(programs), (program) => ({ decision: 'allow', command: `${program} *` }))

test(
  'SB-105 no rule lets a second command through, and none is missed by a deny',
  { timeout: timeLimit(60_000) },
  () => {
    let plain = 0
    fc.assert(
      fc.property(lineArbitrary, ({ text, programs, isPlain }) => {
        if (isPlain) plain++
        expect(decide(allowing(programs), text)).toBe(isPlain ? 'allow' : 'ask')
        for (const program of new Set(programs)) {
          const others = programs.filter((other) => other !== program)
          expect(decide(allowing(others), text)).not.toBe('allow')
          const rules: Rule[] = [
            { decision: 'allow', tool: 'bash' },
            { decision: 'deny', command: `${program} *` },
          ]
          expect(decide(rules, text)).toBe('deny')
        }
      }),
      rounds(1_000, 60_000),
    )
    expect(plain).toBeGreaterThan(times(1_000, 60_000) / 6)
  },
)
