import type { ModelCapabilities, OutputContext, OutputType, StructuredOutputMode } from 'thinharness'
import type { OutputFormat } from '#core/state/output-format.js'
import { outputFormat } from '#run/output/schema.js'

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
