import { Harness } from 'thinharness'
import type { HarnessOptions } from 'thinharness'
import { defineSubagent, parallelLlm } from 'thinharness/tools'
import { localTraces } from 'thinharness/tracing'
import { z } from 'zod'
import { archive } from './archive.js'
import { audit } from './audit.js'
import { researchTools } from './tools.js'

/** `parallel_llm` with typed answers. */
const perPage = parallelLlm({ outputType: z.object({ id: z.string(), claim: z.string().nullable() }) })

/** Checks one claim. Only this agent has the tools of the MCP server, so the researcher's requests stay short. */
const checker = defineSubagent({
  name: 'checker',
  description: 'Checks a claim against the archive of the tea society.',
  tools: [],
  mcpServers: [archive()],
  instructions: 'Look for an entry of the archive that confirms the claim. Name it, or say that there is none.',
  outputType: z.object({ claim: z.string(), source: z.string().nullable() }),
  limits: { modelRequests: 6 },
})

export function researchHarness(options: HarnessOptions = {}): Harness {
  return new Harness({
    root: '.',
    builtinTools: ['read', 'write', 'jsonl_search'],
    tools: [...researchTools, perPage],
    subagents: [checker],
    hooks: [audit('audit.jsonl', ['search_library', 'fetch_pages', 'parallel_llm'])],
    // Traces are stored in the home folder, out of reach of the model's file tools.
    tracing: [localTraces()],
    limits: { modelRequests: 24 },
    ...options,
  })
}
