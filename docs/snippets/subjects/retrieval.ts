import { defineTool } from 'thinharness'
import type { ToolSpec } from 'thinharness'
import { embedding } from 'thinharness/providers'
import { z } from 'zod'

/** Your vector database: pgvector, Pinecone, Qdrant, Elasticsearch, … */
export interface Passages {
  nearest(vector: readonly number[], count: number): Promise<readonly { text: string; url: string }[]>
}

type Embed = (texts: readonly string[]) => Promise<readonly (readonly number[])[]>

/** Retrieval as a tool: the model decides when to search, and in which words. */
export function searchHandbook(
  passages: Passages,
  embed: Embed = embedding('openai:text-embedding-3-small'),
): ToolSpec {
  return defineTool({
    name: 'search_handbook',
    description:
      'Find passages of the handbook. Search again in other words if nothing fits. Name the url in the answer.',
    parameters: z.object({ question: z.string() }),
    annotations: { readOnly: true },
    async handler({ question }) {
      const [vector = []] = await embed([question])
      return passages.nearest(vector, 5)
    },
  })
}
