// How the contenders of the comparison are opened, by name. Each is loaded when it is chosen.
import { loaderOf } from './load.js'
import { PEERS } from './peers.js'
import type { Opening } from '../contender.js'

/** The name of the contender that only imports the modules of a peer. */
export function importOf(peer: string): string {
  return `import of ${peer}`
}

export const PEER_CONTENDERS: Readonly<Record<string, Opening | undefined>> = {
  'AI SDK': async () => (await import('./ai-sdk.js')).open(),
  'OpenAI Agents': async () => (await import('./openai-agents.js')).open(),
  Mastra: async () => (await import('./mastra.js')).open(),
  Strands: async () => (await import('./strands.js')).open(),
  LangChain: async () => (await import('./langchain.js')).open(),
  pi: async () => (await import('./pi.js')).open(),
  Flue: async () => (await import('./flue.js')).open(),
  'TanStack AI': async () => (await import('./tanstack.js')).open(),
  ...Object.fromEntries(
    PEERS.map(({ name, folder, imports }): [string, Opening] => [
      importOf(name),
      async () => {
        const load = await loaderOf(folder)
        for (const each of imports) await load(each)
        return undefined
      },
    ]),
  ),
}
