import type { MessageParam, ToolResultBlockParam } from '@anthropic-ai/sdk/resources/messages'
import type { AssistantEntry, ToolEntry, TranscriptEntry, UserEntry } from '../../contracts/entry.js'
import type { JsonObject } from '../../util/json.js'
import { resultBlocks, userBlocks } from './content.js'
import { toolUseId } from './names.js'
import { assistantBlocks } from './replay.js'

/**
 * The messages of a conversation. The results of a batch are one user message, with the harness's notice behind them
 *; an entry that holds nothing the API would take is left out, for empty messages are refused.
 */
export function encodeMessages(entries: readonly TranscriptEntry[], thinking: boolean): readonly JsonObject[] {
  return turnsOf(entries).flatMap((turn) => {
    switch (turn.role) {
      case 'user':
        return userMessage(turn)
      case 'assistant':
        return message('assistant', assistantBlocks(turn, thinking))
      case 'batch':
        return message('user', batchBlocks(turn))
    }
  })
}

/** The results of a reply's calls, with the notice that follows them. */
interface BatchTurn {
  readonly role: 'batch'
  readonly results: ToolEntry[]
  notice: UserEntry | null
}

function turnsOf(entries: readonly TranscriptEntry[]): (UserEntry | AssistantEntry | BatchTurn)[] {
  const turns: (UserEntry | AssistantEntry | BatchTurn)[] = []
  for (const entry of entries) {
    const last = turns.at(-1)
    const batch = last?.role === 'batch' && last.notice === null ? last : null
    if (entry.role === 'tool' && batch !== null) batch.results.push(entry)
    else if (entry.role === 'tool') turns.push({ role: 'batch', results: [entry], notice: null })
    else if (entry.role === 'user' && entry.notice === true && batch !== null) batch.notice = entry
    else turns.push(entry)
  }
  return turns
}

function userMessage({ content, notice }: UserEntry): JsonObject[] {
  const [only, ...others] = content
  const isPlainText = notice !== true && only?.type === 'text' && only.text !== '' && others.length === 0
  return isPlainText
    ? [{ role: 'user', content: only.text } satisfies MessageParam]
    : message('user', userBlocks(content))
}

function batchBlocks({ results, notice }: BatchTurn): readonly JsonObject[] {
  const forms = results.map(resultOf)
  return [
    ...forms.map(({ block }) => block),
    ...forms.flatMap(({ beside }) => beside),
    ...(notice === null ? [] : userBlocks(notice.content)),
  ]
}

/** A result, and what must stand behind the results: the API takes text alone in a result that is an error. */
function resultOf({ callId, content, isError }: ToolEntry): { block: JsonObject; beside: readonly JsonObject[] } {
  const blocks = typeof content === 'string' ? [] : resultBlocks(content)
  const beside = isError ? blocks.filter(({ type }) => type !== 'text') : []
  const inside = typeof content === 'string' ? content : blocks.filter((block) => !beside.includes(block))
  const block = { type: 'tool_result', tool_use_id: toolUseId(callId) } satisfies ToolResultBlockParam
  return {
    block: { ...block, ...(inside.length > 0 && { content: inside }), ...(isError && { is_error: true }) },
    beside,
  }
}

function message(role: 'user' | 'assistant', content: readonly JsonObject[]): JsonObject[] {
  return content.length === 0 ? [] : [{ role, content }]
}
