import { isObject } from '#util/json.js'
import { readClaudeCode, readCursor, readDroid } from './claude.js'
import { readCodex, readCopilot, readGrok } from './codex.js'
import { inside, listOf } from './fields.js'
import { geminiRecords, readContent, readGemini, readQwen } from './google.js'
import { messagesIn, readAnyMessage, readUiMessage } from './messages.js'
import { readOpencode } from './opencode.js'
import { partsOf } from './parts.js'
import { readPi } from './pi.js'
import { Session } from './session.js'
import type { Fields } from './session.js'
import type { SourceFile } from './source.js'

/** A format of session files. */
interface Format {
  /** The provider of its model, if the file does not say. */
  readonly provider: string
  /** True for a record that only this format has. */
  readonly isOwn: (record: Fields) => boolean
  readonly read: (session: Session, record: Fields) => void
  /** The records of a document; null if it is none of this format. Absent: the format has no documents. */
  readonly recordsOf?: (document: Fields) => readonly Fields[] | null
}

const type = (record: Fields): string => (typeof record['type'] === 'string' ? record['type'] : '')
const message = (record: Fields): Fields => inside(record, 'message')
const hasPart = (record: Fields, form: RegExp): boolean =>
  partsOf(record['content'] ?? []).some((part) => form.test(type(part)))
const isMessage = (record: Fields): boolean => typeof record['role'] === 'string' && record['content'] !== undefined
const isUi = (record: Fields): boolean => typeof record['role'] === 'string' && Array.isArray(record['parts'])

/** The messages of a document, if one of them is of the format. */
function documentOf(isOwn: (record: Fields) => boolean): (document: Fields) => readonly Fields[] | null {
  return (document) => {
    const records = messagesIn(document)
    return records.some(isOwn) ? records : null
  }
}

const ITEM = /^(?:function_call|custom_tool_call|[a-z_]+_call|reasoning|function_call_output|[a-z_]+_call_output)$/
const isItem = (record: Fields): boolean =>
  (ITEM.test(type(record)) && record['payload'] === undefined) ||
  hasPart(record, /^(?:input|output)_(?:text|image|file)$/)
const isAnthropic = (record: Fields): boolean =>
  isMessage(record) && hasPart(record, /^(?:tool_use|tool_result|thinking|.+_tool_(?:use|result))$/)
const isAiSdk = (record: Fields): boolean =>
  isMessage(record) && hasPart(record, /^(?:tool-call|tool-result|tool-approval-.+)$/)
const isChat = (record: Fields): boolean =>
  isMessage(record) || (typeof record['role'] === 'string' && record['tool_calls'] !== undefined)
const isTanstack = (record: Fields): boolean =>
  isUi(record) &&
  partsOf(record['parts']).some((part) => typeof part['content'] === 'string' && part['text'] === undefined)

/** All formats, those with the surest marks first: a record counts for the first whose it is. */
export const FORMATS = {
  codex: {
    provider: 'openai',
    isOwn: (record) =>
      isObject(record['payload']) &&
      /^(?:session_meta|response_item|event_msg|turn_context|compacted|world_state)$/.test(type(record)),
    read: readCodex,
  },
  copilot: {
    provider: 'unknown',
    isOwn: (record) => /^[a-z]+\.[a-z_]+$/.test(type(record)) && isObject(record['data']),
    read: readCopilot,
  },
  qwen: {
    provider: 'qwen',
    isOwn: (record) => Array.isArray(message(record)['parts']),
    read: readQwen,
  },
  opencode: {
    provider: 'unknown',
    isOwn: () => false,
    read: readOpencode,
    recordsOf: (document) => {
      const isStorage = Object.keys(document).some((path) => /(?:^|\/)(?:message|part|session)\//.test(path))
      const isExport = listOf(document['messages']).some((each) => isObject(inside(each)['info']))
      return isStorage || isExport ? [document] : null
    },
  },
  droid: {
    provider: 'unknown',
    isOwn: (record) =>
      type(record) === 'session_start' ||
      (type(record) === 'message' && hasPart(message(record), /^tool_(?:use|result)$/)),
    read: readDroid,
  },
  openclaw: {
    provider: 'unknown',
    // Its sessions are those of pi: only the names in them differ.
    isOwn: (record) => type(record) !== 'message' && /openclaw|clawdbot|moltbot/i.test(JSON.stringify(record)),
    read: readPi,
  },
  pi: {
    provider: 'unknown',
    isOwn: (record) =>
      /^(?:session|model_change|thinking_level_change)$/.test(type(record)) ||
      (type(record) === 'message' && isObject(record['message'])),
    read: readPi,
  },
  'claude-code': {
    provider: 'anthropic',
    isOwn: (record) =>
      (/^(?:user|assistant)$/.test(type(record)) && isObject(record['message'])) ||
      (type(record) === 'summary' && record['leafUuid'] !== undefined),
    read: readClaudeCode,
  },
  cursor: {
    provider: 'unknown',
    isOwn: (record) =>
      type(record) === 'turn_ended' ||
      (record['type'] === undefined && isObject(record['message']) && typeof record['role'] === 'string'),
    read: readCursor,
  },
  gemini: {
    provider: 'google',
    isOwn: (record) =>
      type(record) === 'gemini' ||
      (record['sessionId'] !== undefined && record['projectHash'] !== undefined) ||
      (type(record) === 'user' && record['id'] !== undefined && record['content'] !== undefined) ||
      (isUi(record) && partsOf(record['parts']).every((part) => type(part) === '')),
    read: (session, record) => (isUi(record) ? readContent(session, record) : readGemini(session, record)),
    recordsOf: (document) => {
      const isOwn =
        document['projectHash'] !== undefined ||
        listOf(document['messages']).some((each) => type(inside(each)) === 'gemini')
      if (isOwn) return geminiRecords(document)
      return Array.isArray(document['history']) ? listOf(document['history']).map(() => ({ type: 'history' })) : null
    },
  },
  grok: {
    provider: 'xai',
    isOwn: (record) =>
      (/^(?:user|assistant|system|backend_tool_call)$/.test(type(record)) &&
        ['message', 'role', 'id'].every((name) => record[name] === undefined)) ||
      (type(record) === 'tool_result' && record['tool_call_id'] !== undefined),
    read: readGrok,
  },
  hermes: {
    provider: 'unknown',
    isOwn: () => false,
    read: readAnyMessage,
    recordsOf: (document) => {
      const isOwn = document['session_id'] !== undefined && Array.isArray(document['messages'])
      return isOwn ? messagesIn(document) : null
    },
  },
  'tanstack-ui': {
    provider: 'unknown',
    isOwn: isTanstack,
    read: readUiMessage,
    recordsOf: documentOf(isTanstack),
  },
  'ai-sdk-ui': {
    provider: 'unknown',
    isOwn: (record) => isUi(record) && partsOf(record['parts']).some((part) => type(part) !== ''),
    read: readUiMessage,
    recordsOf: documentOf((record) => isUi(record) && partsOf(record['parts']).some((part) => type(part) !== '')),
  },
  'ai-sdk': { provider: 'unknown', isOwn: isAiSdk, read: readAnyMessage, recordsOf: documentOf(isAiSdk) },
  'openai-responses': {
    provider: 'openai',
    isOwn: isItem,
    read: readAnyMessage,
    recordsOf: (document) =>
      document['input'] !== undefined || document['output'] !== undefined ? messagesIn(document) : null,
  },
  'anthropic-messages': {
    provider: 'anthropic',
    isOwn: isAnthropic,
    read: readAnyMessage,
    recordsOf: documentOf(isAnthropic),
  },
  'openai-chat': { provider: 'openai', isOwn: isChat, read: readAnyMessage, recordsOf: documentOf(isChat) },
} as const satisfies Readonly<Record<string, Format>>

/** The name of a format, as `--from` takes it. */
export type FormatName = keyof typeof FORMATS

export const FORMAT_NAMES = Object.keys(FORMATS) as readonly FormatName[]

/** The format that the content is of; null if it is none that is known. */
export function formatOf({ records, document }: SourceFile): FormatName | null {
  if (document !== null) return FORMAT_NAMES.find((name) => recordsFor(name, document) !== null) ?? null
  const counts = new Map<FormatName, number>()
  for (const record of records.slice(0, MOST_LOOKED_AT)) {
    const name = FORMAT_NAMES.find((each) => FORMATS[each].isOwn(record))
    if (name !== undefined) counts.set(name, (counts.get(name) ?? 0) + 1)
  }

  const [first] = [...counts.keys()].toSorted((one, other) => weight(other, counts) - weight(one, counts))
  return first ?? null
}

/** The records of a format among the first ones are enough. */
const MOST_LOOKED_AT = 200

/** One mark of OpenClaw or Droid is enough, whose messages are like those of others; plain messages are of any format beside them. */
function weight(name: FormatName, counts: ReadonlyMap<FormatName, number>): number {
  if (name === 'openclaw' || name === 'droid') return Infinity
  return FORMAT_NAMES.indexOf(name) > FORMAT_NAMES.indexOf('hermes')
    ? -FORMAT_NAMES.indexOf(name)
    : (counts.get(name) ?? 0)
}

function recordsFor(name: FormatName, document: Fields): readonly Fields[] | null {
  const { recordsOf = () => null }: Format = FORMATS[name]
  return recordsOf(document)
}

/** What a file holds, read as of a format. Nothing in it makes it fail. */
export function readSession(name: FormatName, { records, document }: SourceFile): Session {
  const session = new Session()
  const { read }: Format = FORMATS[name]
  if (document !== null)
    session.about({
      id: document['session_id'] ?? document['sessionId'] ?? document['id'],
      cwd: document['cwd'],
      model: document['model'],
    })
  for (const record of document === null ? records : (recordsFor(name, document) ?? [document])) read(session, record)
  return session
}
