import type { RequestConstants } from '../model-session.js'
import type { ToolSpec } from '../tools/tool-spec.js'
import type { RunLimits } from '#contracts/limits.js'
import { sha256 } from '#util/platform/sha256.js'

/** The configuration of a run, as digests: enough to notice that a run continues with another one. */
export interface ConfigDigest {
  readonly instructions: string
  /** Of each tool, its definition as the model reads it. */
  readonly tools: Readonly<Record<string, string>>
  /** Of the form of the answer. */
  readonly output: string
  readonly limits: string
}

/**
 * The configuration that a run may continue with: exactly its own (`same`); any, as long as the tools whose calls are still to
 * be run are there and take the recorded arguments (`compatible`); any at all (`any`).
 */
export type ConfigPolicy = 'same' | 'compatible' | 'any'

export function configDigest(
  { instructions, structuredOutput, tools }: RequestConstants,
  specs: Iterable<ToolSpec>,
  limits: RunLimits,
): ConfigDigest {
  const digests: Record<string, string> = Object.create(null) as Record<string, string>
  for (const spec of specs) digests[spec.name] = toolDigest(spec)
  const answerTool = tools.filter(({ name }) => digests[name] === undefined)
  return {
    instructions: digestOf(instructions),
    tools: { ...digests },
    output: digestOf([structuredOutput, answerTool]),
    limits: digestOf(limits),
  }
}

export function isSameConfig(a: ConfigDigest, b: ConfigDigest): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b)
}

/** The differences between two configurations, in plain words. */
export function configDifferences(before: ConfigDigest, now: ConfigDigest): readonly string[] {
  const names = new Set([...Object.keys(before.tools), ...Object.keys(now.tools)])
  const tools = [...names].filter((name) => hasToolChanged(before, now, name))
  const others = (['instructions', 'output', 'limits'] as const).filter((part) => before[part] !== now[part])
  return [...others, ...tools.map((name) => `tool \`${name}\``)]
}

/** True if a tool has another definition, or is there in one of both only. */
export function hasToolChanged(before: ConfigDigest, now: ConfigDigest, name: string): boolean {
  return own(before.tools, name) !== own(now.tools, name)
}

function own(digests: Readonly<Record<string, string>>, name: string): string | undefined {
  return Object.hasOwn(digests, name) ? digests[name] : undefined
}

/** Made once a tool: they are the same in every run. */
const ofTools = new WeakMap<ToolSpec, string>()

function toolDigest(spec: ToolSpec): string {
  let digest = ofTools.get(spec)
  const { name, description, parameters, hosted } = spec
  const definition = hosted === undefined ? [name, description, parameters] : [name, description, parameters, hosted]
  if (digest === undefined) ofTools.set(spec, (digest = digestOf(definition)))
  return digest
}

/** Digests of the latest texts: most runs of a harness have the same instructions, answers and limits. */
const latest = new Map<string, string>()
const MOST_LATEST = 32
/** Longer texts are not held, in characters. */
const LONGEST_LATEST = 16_384

/** 96 bits: enough to tell two configurations apart. */
function digestOf(value: unknown): string {
  const text = JSON.stringify(value)
  const known = latest.get(text)
  if (known !== undefined) return known
  const digest = sha256(text).slice(0, 24)
  if (text.length > LONGEST_LATEST) return digest
  const oldest = latest.size < MOST_LATEST ? undefined : latest.keys().next().value
  if (oldest !== undefined) latest.delete(oldest)
  latest.set(text, digest)
  return digest
}
