// Recorded requests of providers, with the input tokens that they reported.
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fromMessages, HarnessError } from 'thinharness'
import type { Model, ToolDefinition, TranscriptEntry } from 'thinharness'

type Json = Readonly<Record<string, unknown>>

/** A request, and its length as the provider counts. */
export interface Recorded {
  readonly provider: string
  readonly model: Model
  readonly entries: readonly TranscriptEntry[]
  readonly instructions: string
  readonly tools: readonly ToolDefinition[]
  readonly tokens: number
  /** The length of the request before it, if it was recorded too. */
  readonly before: number | null
}

interface Case {
  readonly api?: string | undefined
  readonly provider?: string | null | undefined
  readonly request?: { readonly body?: Json | null } | null
  readonly expect?: { readonly usage?: { readonly inputTotal?: number | null } | null } | null
}

/** Requests of all cases in a folder. Those with content that has no entry, such as tools of the provider, are left out. */
export async function recordedRequests(folder: string): Promise<readonly Recorded[]> {
  const paths = await readdir(folder, { recursive: true })
  const found: Recorded[] = []
  for (const path of paths.filter((each) => /[\\/].*\.json$/.test(each))) {
    const whole = JSON.parse(await readFile(join(folder, path), 'utf8')) as Case & { exchanges?: readonly Case[] }
    let before: number | null = null
    for (const one of whole.exchanges ?? [whole]) {
      const recorded = requestOf({ ...one, api: whole.api, provider: whole.provider })
      if (recorded !== null) found.push({ ...recorded, before })
      before = recorded?.tokens ?? null
    }
  }
  return found
}

function requestOf({ api = '', provider, request, expect }: Case): Omit<Recorded, 'before'> | null {
  const body = request?.body
  const tokens = expect?.usage?.inputTotal ?? 0
  if (!isObject(body) || tokens === 0 || /reported-errors|mutated/.test(api)) return null
  const messages = messagesOf(body)
  const tools = listOf(body['tools']).map(toolOf)
  // What the provider has, and what is not text, is counted otherwise.
  if (
    tools.includes(null) ||
    /"(?:image|input_image|image_url|document|input_file|file|audio)"/.test(JSON.stringify(messages))
  )
    return null
  const isSystem = (message: Json): boolean => message['role'] === 'system' || message['role'] === 'developer'
  const said = [body['system'], body['instructions'], ...messages.filter(isSystem).map((message) => message['content'])]
  try {
    return {
      provider: provider ?? api,
      model: modelOf(provider ?? api, typeof body['model'] === 'string' ? body['model'] : ''),
      entries: fromMessages(messages.filter((message) => !isSystem(message))),
      instructions: said.map(textIn).join('\n'),
      tools: tools.filter((tool) => tool !== null),
      tokens,
    }
  } catch (error) {
    if (error instanceof HarnessError) return null
    throw error
  }
}

function messagesOf({ messages, input }: Json): readonly Json[] {
  return typeof input === 'string' ? [{ role: 'user', content: input }] : listOf(messages ?? input)
}

function toolOf(tool: Json): ToolDefinition | null {
  const definition = isObject(tool['function']) ? tool['function'] : tool
  const { name, description = '', parameters, input_schema: schema } = definition
  const given = parameters ?? schema
  if (typeof name !== 'string' || typeof description !== 'string' || !isObject(given)) return null
  return { name, description, parameters: given as ToolDefinition['parameters'] }
}

function textIn(content: unknown): string {
  if (typeof content === 'string') return content
  return listOf(content)
    .map(({ text }) => (typeof text === 'string' ? text : ''))
    .join('\n')
}

function listOf(value: unknown): readonly Json[] {
  return Array.isArray(value) ? value.filter(isObject) : []
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A model that is never asked. */
export function modelOf(provider: string, id: string): Model {
  return {
    ...{ provider, id, capabilities: {} },
    openSession: () => {
      throw new RangeError('Expected no request.')
    },
  }
}
