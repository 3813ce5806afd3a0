import { CommandError } from './exit-codes.js'

const KEYS = ['ANTHROPIC_API_KEY', 'OPENAI_API_KEY', 'OPENROUTER_API_KEY', 'GEMINI_API_KEY'] as const
/** The model of somebody who has a key and has named none. */
const DEFAULT_MODELS: Readonly<Record<(typeof KEYS)[number], string>> = {
  ANTHROPIC_API_KEY: 'anthropic:claude-sonnet-5',
  OPENAI_API_KEY: 'openai:gpt-5.5',
  OPENROUTER_API_KEY: 'openrouter:anthropic/claude-sonnet-5',
  GEMINI_API_KEY: 'google:gemini-3-pro',
}

/** The model that is named, or that a key in the environment is for. */
export function modelOf(model: string | undefined, isNeeded: boolean): string | undefined {
  const named = model ?? process.env['THINHARNESS_MODEL']
  if (named !== undefined || !isNeeded) return model
  const key = KEYS.find((name) => (process.env[name] ?? '') !== '')
  if (key !== undefined) return DEFAULT_MODELS[key]
  const message = `No model is named, and no key is set. Set one of ${KEYS.map((name) => `\`${name}\``).join(', ')}, or name a model: \`--model local:qwen3\`.`
  throw new CommandError(message)
}
