import Anthropic from '@anthropic-ai/sdk'
import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import OpenAI from 'openai'
import { describe, test } from 'vitest'
import { anthropic, fromAiSdk, gemini, openai, openaiChat, openaiCompatible, openrouter } from 'thinharness/providers'
import { conformance } from 'thinharness/testing'
import type { ConformanceOptions } from 'thinharness/testing'

type Server = Parameters<ConformanceOptions['make']>[0]

interface Adapter extends ConformanceOptions {
  readonly name: string
}

const key = { apiKey: 'any' }

/** OpenAI refuses fields that it does not know in the messages of a request. */
const NO_STRANGE_FIELDS = ['unknown_blocks'] as const
/** The server keeps the replies, with ids that no server would give, and the session knows what it keeps. */
const KEPT_BY_SERVER = ['stable_prefix', 'fresh_session', 'call_ids'] as const
/** Providers of the AI SDK refuse replies that are not as they know them, or drop what they do not know. */
const CHECKED_BY_AI_SDK = ['unknown_blocks', 'call_ids', 'usage'] as const

/** Each adapter over a handed-in `fetch`, our own connections, and an official client. */
const ADAPTERS: readonly Adapter[] = [
  { name: 'openai, fetch', api: 'responses', make: ({ fetch }) => openai('gpt-5.5', { ...key, fetch }) },
  { name: 'openai, HTTP', api: 'responses', make: ({ baseUrl }) => openai('gpt-5.5', { ...key, baseUrl }) },
  { name: 'openai, client', api: 'responses', make: (server) => openai('gpt-5.5', { client: openaiClient(server) }) },
  { name: 'openai without reasoning', api: 'responses', make: ({ fetch }) => openai('gpt-4.1', { ...key, fetch }) },
  {
    name: 'openai, chained',
    api: 'responses',
    make: ({ fetch }) => openai('gpt-5.5', { ...key, fetch, chain: true }),
    without: KEPT_BY_SERVER,
  },
  {
    name: 'openaiChat, fetch',
    api: 'chat',
    make: ({ fetch }) => openaiChat('gpt-4.1', { ...key, fetch }),
    without: NO_STRANGE_FIELDS,
  },
  {
    name: 'openaiChat, client',
    api: 'chat',
    make: (server) => openaiChat('gpt-4.1', { client: openaiClient(server) }),
    without: NO_STRANGE_FIELDS,
  },
  { name: 'openaiCompatible, HTTP', api: 'chat', make: ({ baseUrl }) => openaiCompatible('local', { baseUrl }) },
  { name: 'openrouter, fetch', api: 'openrouter', make: ({ fetch }) => openrouter('x/y', { ...key, fetch }) },
  {
    name: 'openrouter with Claude, HTTP',
    api: 'openrouter',
    make: ({ baseUrl }) => openrouter('anthropic/claude-sonnet-5', { ...key, baseUrl }),
  },
  { name: 'anthropic, fetch', api: 'messages', make: ({ fetch }) => anthropic('claude-sonnet-5', { ...key, fetch }) },
  {
    name: 'anthropic without thoughts, HTTP',
    api: 'messages',
    make: ({ baseUrl }) => anthropic('claude-sonnet-5', { ...key, baseUrl, reasoningEffort: 'none' }),
  },
  {
    name: 'anthropic, client',
    api: 'messages',
    make: (server) => anthropic('claude-sonnet-5', { client: anthropicClient(server) }),
  },
  {
    name: 'anthropic 2026-10-21, fetch',
    api: 'messages',
    make: ({ fetch }) => anthropic('claude-sonnet-5', { ...key, fetch, apiVersion: '2026-10-21' }),
  },
  { name: 'gemini, fetch', api: 'gemini', make: ({ fetch }) => gemini('gemini-3-pro', { ...key, fetch }) },
  {
    name: 'gemini of the second generation, HTTP',
    api: 'gemini',
    make: ({ baseUrl }) => gemini('gemini-2.5-flash-lite', { ...key, baseUrl }),
  },
  {
    name: 'AI SDK, OpenAI',
    api: 'responses',
    make: ({ fetch }) => fromAiSdk(createOpenAI({ ...key, fetch })('gpt-5.5')),
    without: ['unknown_blocks', 'call_ids'],
  },
  {
    name: 'AI SDK, OpenAI chat',
    api: 'chat',
    make: ({ fetch }) => fromAiSdk(createOpenAI({ ...key, fetch }).chat('gpt-5.5')),
    without: ['unknown_blocks'],
  },
  {
    name: 'AI SDK, Anthropic',
    api: 'messages',
    make: ({ fetch }) => fromAiSdk(createAnthropic({ ...key, fetch })('claude-sonnet-5')),
    without: CHECKED_BY_AI_SDK,
  },
]

function openaiClient({ fetch }: Server): OpenAI {
  return new OpenAI({ ...key, fetch, maxRetries: 0 })
}

function anthropicClient({ fetch }: Server): Anthropic {
  return new Anthropic({ ...key, fetch, maxRetries: 0 })
}

describe.each(ADAPTERS)('$name', ({ name: _name, ...options }) => {
  const laws = conformance({ cases: 5, ...options })
  for (const { name, says, check } of laws) test(`${name}: ${says}`, check)
})
