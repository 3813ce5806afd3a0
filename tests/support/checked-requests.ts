import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { requestProblems } from './request-validator.js'

/** Fields that servers of chat completions other than OpenAI's accept in addition to those of the schema. */
const OF_VENDORS = ['cache_control', 'reasoning', 'provider', 'transforms', 'models', 'usage', 'plugins', 'thinking']

/** Problems that are listed. */
const LONGEST = 10

/** A request as `sent-requests.ts` writes it. */
interface SentRequest {
  readonly name: string
  readonly api: string
  /** The `anthropic-version`. */
  readonly version?: string
  readonly body: unknown
}

/** Before all tests, creates a folder for the requests that they send; after them, each request must be valid. */
export function setup(project: TestProject): () => void {
  const folder = mkdtempSync(join(tmpdir(), 'thinharness-requests-'))
  project.provide('sentRequests', folder)
  return () => {
    const problems = readdirSync(folder).flatMap((file) => problemsIn(join(folder, file)))
    rmSync(folder, { recursive: true })
    if (problems.length === 0) return
    process.exitCode = 1
    const shown = problems.slice(0, LONGEST).join('\n')
    throw new Error(`Their API would reject ${problems.length} of the requests that were sent:\n${shown}`)
  }
}

function problemsIn(file: string): readonly string[] {
  const lines = readFileSync(file, 'utf8').split('\n')
  return lines.flatMap((line) => (line === '' ? [] : problemsOf(JSON.parse(line) as SentRequest)))
}

function problemsOf({ name, api, version = '2023-06-01', body }: SentRequest): readonly string[] {
  const allow = api === 'openai-chat' ? OF_VENDORS : []
  const problems = requestProblems(api, api === 'openai-chat' ? withoutServerTools(body) : body, { version, allow })
  return problems.length === 0 ? [] : [[name, ...problems].join('\n  ')]
}

/** OpenRouter's own tools are not in OpenAI's description. */
function withoutServerTools(body: unknown): unknown {
  const { tools, ...others } = body as { readonly tools?: unknown }
  if (!Array.isArray(tools)) return body
  const known = tools.filter((tool: { readonly type?: unknown }) => !String(tool.type).startsWith('openrouter:'))
  return known.length === 0 ? others : { ...others, tools: known }
}
