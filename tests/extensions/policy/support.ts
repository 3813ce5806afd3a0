import fc from 'fast-check'
import type { DescribedCall, Rule } from 'thinharness/policy'

/** Members with a chance of one in two each, so that rules match often enough. */
const maybe = <T>(values: readonly T[]): fc.Arbitrary<T | undefined> =>
  fc.option(fc.constantFrom(...values), { nil: undefined, freq: 2 })

const TOOLS = ['git_push', 'git_pull', 'read', 'write', 'deploy'] as const
const AGENTS = ['helper', 'reviewer'] as const
const SOURCES = ['web', 'server', 'agent'] as const
const PATHS = ['a', 'a/b', 'a/b/c.ts', 'b/c.ts', 'c.ts', 'secret/key'] as const
const HOSTS = ['example.com', 'api.example.com', 'a.b.test', 'b.test'] as const
const TEXTS = ['', 'alpha', 'alphabet', 'beta*', 'x?y'] as const

const TOOL_GLOBS = ['git_push', 'git_*', '*', 'read', '*e*', 'de*oy'] as const
const PATH_GLOBS = ['a', 'a/**', 'a/b/c.ts', '**/c.ts', '**', 'secret/**'] as const
const HOST_GLOBS = ['example.com', '*.example.com', '*.test', '*', 'b.test'] as const
const TEXT_GLOBS = ['', '*', 'alpha', 'alpha*', '*a*', '*t', 'x?*'] as const
const CATEGORIES = ['read', 'edit', 'network', 'execute', 'mcp', 'other'] as const

/** Rules about everything but shell commands. */
export const ruleArbitrary: fc.Arbitrary<Rule> = fc
  .record({
    decision: fc.constantFrom('allow' as const, 'ask' as const, 'deny' as const),
    tool: fc.oneof(
      maybe(TOOL_GLOBS),
      fc.constant(undefined),
      fc.subarray([...TOOL_GLOBS], { minLength: 1, maxLength: 3 }),
    ),
    category: maybe([...CATEGORIES, undefined, undefined]),
    agent: maybe([...AGENTS, '*', undefined, undefined]),
    source: maybe([...SOURCES, undefined, undefined]),
    path: maybe([...PATH_GLOBS, undefined, undefined]),
    host: maybe([...HOST_GLOBS, undefined, undefined]),
    args: fc.option(fc.dictionary(fc.constantFrom('text', 'note'), fc.constantFrom(...TEXT_GLOBS), { maxKeys: 2 }), {
      nil: undefined,
      freq: 1,
    }),
  })
  .map((rule) => (Object.keys(rule.args ?? {}).length === 0 ? { ...rule, args: undefined } : rule))

const ANNOTATIONS = [
  ['read', { readOnly: true }],
  ['edit', { readOnly: false, openWorld: false }],
  ['network', { readOnly: true, openWorld: true }],
] as const

export interface GeneratedCall {
  readonly call: DescribedCall
  readonly category: string
  readonly paths: readonly string[]
  readonly hosts: readonly string[]
}

export const callArbitrary: fc.Arbitrary<GeneratedCall> = fc
  .record({
    tool: fc.constantFrom(...TOOLS),
    kind: fc.constantFrom(...ANNOTATIONS, ['mcp', {}] as const),
    agent: fc.constantFrom(...AGENTS, null),
    sources: fc.subarray([...SOURCES]),
    paths: fc.subarray([...PATHS], { maxLength: 2 }),
    hosts: fc.subarray([...HOSTS], { maxLength: 2 }),
    text: maybe(TEXTS),
    note: maybe(TEXTS),
  })
  .map(({ tool, kind: [category, annotations], agent, sources, paths, hosts, text, note }) => ({
    ...{ category, paths, hosts },
    call: {
      ...{ tool, annotations, agent, sources },
      ...(category === 'mcp' && { metadata: { source: 'mcp' } }),
      args: {
        ...(paths.length > 0 && { files: paths.map((path) => ({ path: `./${path}` })) }),
        ...(hosts.length > 0 && { url: hosts.map((host) => `https://me@${host.toUpperCase()}.:8443/x`) }),
        ...(text !== undefined && { text }),
        ...(note !== undefined && { note }),
      },
    },
  }))
