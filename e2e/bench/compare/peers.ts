// The libraries that are compared. They are installed when the comparison runs, each in a folder of its own.

export interface Peer {
  readonly name: string
  /** The folder of its packages. */
  readonly folder: string
  /** Pinned: the comparison changes only when this list does. */
  readonly packages: Readonly<Record<string, string>>
  /** The modules that a program imports to use it. */
  readonly imports: readonly string[]
}

const ZOD = { zod: '4.6.7' }

export const PEERS: readonly Peer[] = [
  {
    name: 'AI SDK',
    folder: 'ai-sdk',
    packages: { ai: '7.0.173', '@ai-sdk/openai': '4.0.118', ...ZOD },
    imports: ['ai', '@ai-sdk/openai'],
  },
  {
    name: 'OpenAI Agents',
    folder: 'openai-agents',
    packages: { '@openai/agents': '0.20.0', ...ZOD },
    imports: ['@openai/agents'],
  },
  {
    name: 'Mastra',
    folder: 'mastra',
    packages: { '@mastra/core': '1.71.0', '@ai-sdk/openai': '3.0.141', ...ZOD },
    imports: ['@mastra/core/agent', '@mastra/core/tools', '@ai-sdk/openai'],
  },
  {
    name: 'Strands',
    folder: 'strands',
    packages: { '@strands-agents/sdk': '1.19.0', openai: '6.49.0', ...ZOD },
    imports: ['@strands-agents/sdk', '@strands-agents/sdk/models/openai'],
  },
  {
    name: 'LangChain',
    folder: 'langchain',
    packages: {
      ...{ langchain: '1.5.14', '@langchain/openai': '1.6.0' },
      ...{ '@langchain/core': '1.4.0', '@langchain/langgraph': '1.7.3', ...ZOD },
    },
    imports: ['langchain', '@langchain/openai'],
  },
  {
    name: 'pi',
    folder: 'pi',
    packages: { '@earendil-works/pi-agent-core': '1.6.0', '@earendil-works/pi-ai': '1.6.0', ...ZOD },
    imports: ['@earendil-works/pi-agent-core', '@earendil-works/pi-ai', '@earendil-works/pi-ai/providers/openai'],
  },
  {
    name: 'TanStack AI',
    folder: 'tanstack',
    packages: { '@tanstack/ai': '0.58.0', '@tanstack/ai-openai': '0.23.1', ...ZOD },
    imports: ['@tanstack/ai', '@tanstack/ai-openai'],
  },
  {
    name: 'Flue',
    folder: 'flue',
    packages: { '@flue/runtime': '2.1.0', '@earendil-works/pi-ai': '0.83.0', valibot: '1.5.0' },
    imports: ['@flue/runtime', '@flue/runtime/node', '@earendil-works/pi-ai'],
  },
]
