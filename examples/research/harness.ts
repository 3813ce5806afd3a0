import { Harness } from 'thinharness'
import type { HarnessOptions } from 'thinharness'
import { parallelLlm } from 'thinharness/tools'
import { localTraces } from 'thinharness/tracing'
import { z } from 'zod'
import { audit } from './audit.js'
import { researchTools } from './tools.js'

/** `parallel_llm` with typed answers. */
const perPage = parallelLlm({ outputType: z.object({ id: z.string(), claim: z.string().nullable() }) })

export function researchHarness(options: HarnessOptions = {}): Harness {
  return new Harness({
    root: '.',
    builtinTools: ['read', 'write', 'jsonl_search'],
    tools: [...researchTools, perPage],
    subagents: [],
    hooks: [audit('audit.jsonl', ['search_library', 'fetch_pages', 'parallel_llm'])],
    // Traces are stored in the home folder, out of reach of the model's file tools.
    tracing: [localTraces()],
    limits: { modelRequests: 24 },
    ...options,
  })
}
