import type { ModelCapabilities, OutputType } from 'thinharness'
import type { OutputContext } from '#core/tools/output-type.js'
import type { StructuredOutputMode } from '#core/model-session.js'
import type { OutputFormat } from '#core/state/output-format.js'
import { outputFormat } from '#run/output/parse-answer.js'

/** A run in which nothing has happened. */
export const CONTEXT: OutputContext = {
  runId: 'run_1',
  metadata: {},
  root: '/nowhere',
  signal: new AbortController().signal,
  transcript: [],
}

export function formatOf(
  type: OutputType,
  mode: StructuredOutputMode | 'auto',
  capabilities: ModelCapabilities,
): OutputFormat {
  return outputFormat({ type, mode }, capabilities)
}
