import type { Model } from '#core/model-session.js'
import { parseModelRef } from '#contracts/model-reference.js'
import { environment } from '#util/platform/node.js'
import type { ModelRef } from '#contracts/model-reference.js'

/** Address of a local server, unless the reference or `$THINHARNESS_LOCAL_URL` has one: Ollama's default port. */
const LOCAL_URL = 'http://127.0.0.1:11434/v1'

/** The model of a reference; its adapter is loaded now. Throws `invalid_options` for anything but a reference. */
export async function inferModel(ref: ModelRef): Promise<Model> {
  const { provider, id, baseUrl } = parseModelRef(ref)
  switch (provider) {
    case 'anthropic':
      return (await import('./anthropic/index.js')).anthropic(id)
    case 'google':
      return (await import('./google/index.js')).gemini(id)
    case 'openai':
      return (await import('./openai/index.js')).openai(id)
    case 'openrouter':
      return (await import('./chat/index.js')).openrouter(id)
    case 'local': {
      const { openaiCompatible } = await import('./chat/index.js')
      return openaiCompatible(id, { baseUrl: baseUrl ?? localUrl() })
    }
  }
}

/** The address of the server that `local:…` means. */
export function localUrl(): string {
  return environment('THINHARNESS_LOCAL_URL') ?? LOCAL_URL
}
