import { preparsePolicySet, statefulIsAuthorized } from '@cedar-policy/cedar-wasm/nodejs'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { explain } from 'thinharness/policy'
import type { Rule } from 'thinharness/policy'
import { callArbitrary, ruleArbitrary } from './support.js'
import type { GeneratedCall } from './support.js'
import { rounds } from '../../support/length.js'

/** Calls that are tried with each set of rules. */
const CALLS = 10

const quoted = (text: string): string => JSON.stringify(text)
const like = (name: string, glob: string): string => `${name} like ${quoted(glob)}`
const either = (...conditions: string[]): string => `(${conditions.join(' || ')})`

/** A condition on each of at most two values, all or one of which have to fit. */
function each(name: string, allows: boolean, fits: (value: string) => string): string {
  const first = `context has ${name}1 && ${fits(`context.${name}1`)}`
  const second = fits(`context.${name}2`)
  return allows
    ? `(${first} && (!(context has ${name}2) || ${second}))`
    : `((${first}) || (context has ${name}2 && ${second}))`
}

function path(glob: string, value: string): string {
  if (glob === '**') return 'true'
  if (glob.startsWith('**/')) return either(`${value} == ${quoted(glob.slice(3))}`, like(value, glob.slice(1)))
  if (!glob.endsWith('/**')) return `${value} == ${quoted(glob)}`
  return either(`${value} == ${quoted(glob.slice(0, -3))}`, like(value, glob.slice(0, -1)))
}

/** The conditions of a rule in the language of Cedar. */
function conditions({ decision, tool, category, agent, source, path: file, host, args = {} }: Rule): string {
  const allows = decision === 'allow'
  const tools = tool === undefined ? [] : typeof tool === 'string' ? [tool] : tool
  const all = [
    ...(tool === undefined ? [] : [either(...tools.map((name) => like('context.tool', name)))]),
    ...(category === undefined ? [] : [`context.category == ${quoted(category)}`]),
    ...(agent === undefined ? [] : [`context has agent && ${like('context.agent', agent)}`]),
    ...(source === undefined
      ? []
      : [allows ? `context.sources == [${quoted(source)}]` : `context.sources.contains(${quoted(source)})`]),
    ...(file === undefined ? [] : [each('path', allows, (value) => path(file, value))]),
    ...(host === undefined ? [] : [each('host', allows, (value) => like(value, host))]),
    ...Object.entries(args).map(([name, glob]) => `context.args has ${name} && ${like(`context.args.${name}`, glob)}`),
  ]
  return all.length === 0 ? 'true' : all.map((each) => `(${each})`).join(' && ')
}

function policySet(name: string, rules: readonly Rule[], effect: (rule: Rule) => 'permit' | 'forbid'): void {
  const policies = rules.map((rule, index): [string, string] => [
    `r${index}`,
    `${effect(rule)}(principal, action, resource) when { ${conditions(rule)} };`,
  ])
  const parsed = preparsePolicySet(name, {
    staticPolicies: { ...Object.fromEntries(policies), all: 'permit(principal, action, resource);' },
  })
  expect(parsed, JSON.stringify(rules)).toMatchObject({ type: 'success' })
}

function judged(name: string, { call, category, paths, hosts }: GeneratedCall) {
  const { url: _url, files: _files, ...args } = call.args ?? {}
  const numbered = (key: string, values: readonly string[]): Record<string, string> =>
    Object.fromEntries(values.map((value, index) => [`${key}${index + 1}`, value]))
  const answer = statefulIsAuthorized({
    principal: { type: 'Run', id: 'run' },
    action: { type: 'Action', id: 'call' },
    resource: { type: 'Tool', id: call.tool },
    context: {
      ...{ tool: call.tool, category, sources: [...(call.sources ?? [])], args: args as Record<string, string> },
      ...(typeof call.agent === 'string' && { agent: call.agent }),
      ...numbered('path', paths),
      ...numbered('host', hosts),
    },
    preparsedPolicySetId: name,
    entities: [],
  })
  if (answer.type === 'failure') throw new Error(JSON.stringify(answer))
  expect(answer.response.diagnostics.errors).toEqual([])
  return {
    decision: answer.response.decision,
    matching: answer.response.diagnostics.reason.filter((id) => id !== 'all'),
  }
}

test('an independent policy engine agrees on which rules match, and that a deny wins', { timeout: 900_000 }, () => {
  fc.assert(
    fc.property(
      fc.array(ruleArbitrary, { minLength: 1, maxLength: 8 }),
      fc.array(callArbitrary, { minLength: CALLS, maxLength: CALLS }),
      (rules, calls) => {
        policySet('matching', rules, () => 'permit')
        policySet('deciding', rules, ({ decision }) => (decision === 'deny' ? 'forbid' : 'permit'))
        for (const generated of calls) {
          const matching = rules.flatMap((rule, index) =>
            explain([rule], generated.call).decision === null ? [] : [`r${index}`],
          )
          expect(judged('matching', generated).matching.sort()).toEqual(matching.sort())
          const isDenied = explain(rules, generated.call).decision === 'deny'
          expect(judged('deciding', generated).decision).toBe(isDenied ? 'deny' : 'allow')
        }
      },
    ),
    rounds(60, 10_000),
  )
})
