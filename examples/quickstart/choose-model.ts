import type { Model } from 'thinharness'
import { openaiCompatible } from 'thinharness/providers'
import { scriptedProvider } from 'thinharness/testing'
import { answerByScript } from './scripted.js'

/** A model, and a note about why it was chosen. Disposing stops the server that was started for it. */
export interface ChosenModel extends AsyncDisposable {
  /** A reference; or the address of the scripted provider. */
  readonly model: ModelChoice
  readonly note: string
  /** How many requests the scripted provider has had; null for another model. */
  readonly requests: () => number | null
}

/** Plain data, so that another process can be told of it. */
export type ModelChoice = { readonly ref: string } | { readonly scripted: string }

export function modelOf(choice: ModelChoice): string | Model {
  if ('ref' in choice) return choice.ref
  return openaiCompatible('scripted', { baseUrl: choice.scripted, apiKey: 'none', provider: 'scripted' })
}

const KEYS = [
  ['OPENAI_API_KEY', 'openai:gpt-5.5'],
  ['ANTHROPIC_API_KEY', 'anthropic:claude-sonnet-5'],
  ['OPENROUTER_API_KEY', 'openrouter:anthropic/claude-sonnet-5'],
] as const

/** Default addresses of Ollama, LM Studio, llama.cpp and vLLM. */
const LOCAL_SERVERS = [11434, 1234, 8080, 8000].map((port) => `http://127.0.0.1:${port}/v1`)
const LOCAL_TIMEOUT_MS = 250

/** The first available of: the requested model, a model for an API key in the environment, a local server, the scripted provider. */
export async function chooseModel(asked: string | undefined): Promise<ChosenModel> {
  const named = asked ?? process.env['THINHARNESS_MODEL']
  if (named === 'scripted') return byScript('as requested')
  if (named !== undefined) return chosen(named, `Model: ${named}`)
  const key = KEYS.find(([variable]) => (process.env[variable] ?? '') !== '')
  if (key !== undefined) return chosen(key[1], `Model: ${key[1]} (${key[0]} is set)`)
  const found = await Promise.all(LOCAL_SERVERS.map(localModel))
  const local = found.find((model) => model !== undefined)
  return local === undefined
    ? byScript('because no API key is set')
    : chosen(local, `Model: ${local} (found on a local server)`)
}

function chosen(model: string, note: string): ChosenModel {
  return { model: { ref: model }, note, requests: () => null, [Symbol.asyncDispose]: () => Promise.resolve() }
}

async function localModel(url: string): Promise<string | undefined> {
  try {
    const answer = await fetch(`${url}/models`, { signal: AbortSignal.timeout(LOCAL_TIMEOUT_MS) })
    const { data } = (await answer.json()) as { data?: { id?: unknown }[] }
    const id = data?.[0]?.id
    return typeof id === 'string' ? `local:${id}@${url}` : undefined
  } catch {
    return undefined
  }
}

async function byScript(why: string): Promise<ChosenModel> {
  const provider = await scriptedProvider()
  provider.always(answerByScript)
  return {
    model: { scripted: provider.url.chat },
    note: `Model: the scripted provider, ${why}.\nIts replies are scripted; HTTP, adapter, tools and files are real.`,
    requests: () => provider.requests.length,
    [Symbol.asyncDispose]: () => provider.close(),
  }
}
