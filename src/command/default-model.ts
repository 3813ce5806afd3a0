import type { ModelRef, ProviderName } from '#contracts/model-reference.js'
import { CommandError } from './exit-codes.js'

/** The model of somebody who has this key and has named none. */
const DEFAULT_MODELS: Readonly<Record<Exclude<ProviderName, 'local'>, readonly [key: string, model: ModelRef]>> = {
  anthropic: ['ANTHROPIC_API_KEY', 'anthropic:claude-sonnet-5'],
  openai: ['OPENAI_API_KEY', 'openai:gpt-5.5'],
  openrouter: ['OPENROUTER_API_KEY', 'openrouter:anthropic/claude-sonnet-5'],
  google: ['GEMINI_API_KEY', 'google:gemini-3-pro'],
}

/** The model that is named, or that a key in the environment is for. */
export function modelOf(model: string | undefined, isNeeded: boolean): string | undefined {
  if ((model ?? process.env['THINHARNESS_MODEL']) !== undefined || !isNeeded) return model
  const all = Object.values(DEFAULT_MODELS)
  for (const [key, ofKey] of all) if ((process.env[key] ?? '') !== '') return ofKey
  const message = `No model is named, and no key is set. Set one of ${all.map(([key]) => `\`${key}\``).join(', ')}, or name a model: \`--model local:qwen3\`.`
  throw new CommandError(message)
}
