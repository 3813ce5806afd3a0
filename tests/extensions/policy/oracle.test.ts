import fc from 'fast-check'
import { expect, test } from 'vitest'
import { explain, grant } from 'thinharness/policy'
import type { DescribedCall, Explanation, Rule } from 'thinharness/policy'
import { rounds, times } from '../../support/length.js'

/** Triples of rules, grants and calls that are tried. */
const TRIPLES = times(1_500, 100_000)

// A small world in which every condition is an equation, so that a second opinion is easy to write.

const COMMANDS = ['ls', 'ls -l', 'git status', 'git push', 'rm x'] as const
const PATTERNS = [...COMMANDS, 'ls *', 'git *', '*'] as const
const JOINTS = [' ; ', ' && ', ' | ', ' & ', '\n', ' || '] as const

type Arguments = Readonly<Record<string, string>>

interface Conditions {
  readonly tool?: string | undefined
  readonly category?: Rule['category']
  readonly agent?: string | undefined
  readonly command?: string | undefined
  readonly args?: Arguments | undefined
}

const seldom = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.option(arbitrary, { nil: undefined, freq: 1 })

const conditionArbitrary: fc.Arbitrary<Conditions> = fc.record({
  tool: fc.option(fc.constantFrom('bash', 'pay', 'read'), { nil: undefined }),
  category: seldom(fc.constantFrom('execute' as const, 'read' as const, 'other' as const)),
  agent: seldom(fc.constant('helper')),
  command: seldom(fc.constantFrom(...PATTERNS)),
  args: seldom(fc.constantFrom<Arguments>({ to: 'ann' }, { to: 'bob' })),
})

const ruleArbitrary: fc.Arbitrary<Rule> = fc
  .tuple(conditionArbitrary, fc.constantFrom('allow' as const, 'ask' as const, 'allow' as const, 'deny' as const))
  .map(([conditions, decision]) => ({ ...conditions, decision }))

const grantArbitrary = conditionArbitrary
  .filter((conditions) => Object.values(conditions).some((value) => value !== undefined))
  .map((conditions) => grant(conditions))

interface World {
  readonly tool: 'bash' | 'pay' | 'read'
  readonly commands: readonly string[]
  readonly isUnclear: boolean
  readonly to: string | undefined
  readonly agent: string | null
  readonly approval: boolean | 'always'
}

const worldArbitrary = fc.record({
  tool: fc.constantFrom('bash' as const, 'bash' as const, 'pay' as const, 'read' as const),
  commands: fc.array(fc.constantFrom(...COMMANDS), { minLength: 1, maxLength: 3 }),
  joint: fc.constantFrom(...JOINTS),
  isUnclear: fc.option(fc.constant(true), { nil: false, freq: 1 }),
  to: fc.constantFrom('ann', 'bob', undefined),
  agent: fc.constantFrom('helper', null),
  approval: fc.constantFrom<boolean | 'always'>(false, false, false, true, 'always'),
})

const CATEGORY = { bash: 'execute', pay: 'other', read: 'read' } as const

function fits(pattern: string, command: string): boolean {
  const words = command.split(' ')
  const wanted = pattern.split(' ')
  if (wanted.at(-1) !== '*') return pattern === command
  const fixed = wanted.slice(0, -1)
  return fixed.length <= words.length && fixed.every((word, index) => word === words[index])
}

function holds(rule: Rule, world: World, command: string | null): boolean {
  const { tool, category, agent, args } = rule
  if (tool !== undefined && tool !== world.tool) return false
  if (category !== undefined && category !== CATEGORY[world.tool]) return false
  if (agent !== undefined && agent !== world.agent) return false
  if (args !== undefined && args['to'] !== world.to) return false
  return rule.command === undefined || (command !== null && fits(rule.command, command))
}

function rank({ args, command, tool, agent, category }: Rule): number {
  if (args !== undefined || command !== undefined) return 30
  if (tool !== undefined) return 20
  return agent !== undefined || category !== undefined ? 10 : 0
}

type Verdict = Explanation['decision']

/** The order of a policy, written down a second time. */
function expected(rules: readonly Rule[], world: World, line: string): Verdict {
  const commands: readonly (string | null)[] = world.tool === 'bash' ? world.commands : [null]
  if (rules.some((rule) => rule.decision === 'deny' && commands.some((command) => holds(rule, world, command))))
    return 'deny'
  if (world.approval === 'always') return 'ask'
  const named: boolean[] = []
  const verdicts = commands.map((command): Verdict => {
    const matching = rules.filter((rule) => rule.decision !== 'deny' && holds(rule, world, command))
    named.push(
      matching.some(
        (rule) =>
          rule.decision === 'allow' && (rule.tool !== undefined || rule.command !== undefined || rank(rule) === 0),
      ),
    )
    const plain = matching.filter((rule) => rule.grant === undefined)
    const highest = Math.max(...plain.map(rank))
    const best = plain.filter((rule) => rank(rule) === highest)
    const verdict = best.length === 0 ? null : best.some((rule) => rule.decision === 'ask') ? 'ask' : 'allow'
    return verdict !== 'allow' && matching.some((rule) => rule.grant === true) ? 'allow' : verdict
  })
  if (verdicts.includes('ask')) return 'ask'
  const isWhole = rules.some(
    (rule) => rule.command === line && rule.decision === 'allow' && holds({ ...rule, command: undefined }, world, null),
  )
  if (world.tool === 'bash' && world.isUnclear && !isWhole) return 'ask'
  if (world.approval && named.includes(false)) return 'ask'
  return verdicts.includes(null) ? null : 'allow'
}

test('random rules, grants and calls are decided as by a second implementation', { timeout: 900_000 }, () => {
  const seen = new Map<Verdict, number>()
  fc.assert(
    fc.property(
      fc.array(ruleArbitrary, { maxLength: 6 }),
      fc.array(grantArbitrary, { maxLength: 2 }),
      worldArbitrary,
      (plain, grants, { joint, ...world }) => {
        const line = world.commands.join(joint) + (world.isUnclear ? ' > out' : '')
        const call: DescribedCall = {
          tool: world.tool,
          agent: world.agent,
          requiresApproval: world.approval,
          annotations: world.tool === 'read' ? { readOnly: true } : {},
          reach: world.tool === 'bash' ? { programs: ['*'] } : {},
          args: { ...(world.tool === 'bash' && { command: line }), ...(world.to !== undefined && { to: world.to }) },
        }
        const rules = [...plain, ...grants]
        const decided = expected(rules, world, line)
        seen.set(decided, (seen.get(decided) ?? 0) + 1)
        expect(explain(rules, call).decision).toBe(decided)
      },
    ),
    rounds(1_500, 100_000),
  )
  for (const verdict of ['allow', 'ask', 'deny', null] as const)
    expect(seen.get(verdict) ?? 0).toBeGreaterThan(TRIPLES / 25)
})
