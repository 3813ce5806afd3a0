import { isObject } from '#util/json.js'
import { readClaudeCode, readCursor, readDroid } from './claude.js'
import { readCodex, readCopilot, readGrok } from './codex.js'
import { inside, listOf } from './record-fields.js'
import { geminiRecords, readGemini, readQwen } from './google.js'
import { messagesIn, readAnyMessage, readUiMessage } from './any-messages.js'
import { readOpencode } from './opencode.js'
import { partsOf } from './message-parts.js'
import { readPi } from './pi.js'
import { Session } from './session.js'
import type { FileRecord } from './session.js'
import type { SourceFile } from './source.js'

/** A format of session files. */
interface Format {
  /** The provider of its model, if the file does not say. */
  readonly provider?: string
  /** True for a record that only this format has. */
  readonly isOwn: (record: FileRecord) => boolean
  readonly read: (session: Session, record: FileRecord) => void
  /** The records of a document; null if it is none of this format. Absent: the format has no documents. */
  readonly recordsOf?: (document: FileRecord) => readonly FileRecord[] | null
}

const type = (record: FileRecord): string => (typeof record['type'] === 'string' ? record['type'] : '')
const isType = (record: FileRecord, form: RegExp): boolean => form.test(type(record))
const message = (record: FileRecord): FileRecord => inside(record, 'message')
const hasRole = (record: FileRecord): boolean => typeof record['role'] === 'string'
const has = (record: FileRecord, ...names: readonly string[]): boolean =>
  names.every((name) => record[name] !== undefined)
const hasPart = (record: FileRecord, form: RegExp): boolean =>
  partsOf(record['content'] ?? []).some((part) => isType(part, form))
const isMessage = (record: FileRecord): boolean => hasRole(record) && has(record, 'content')
const isUi = (record: FileRecord): boolean => hasRole(record) && Array.isArray(record['parts'])
const uiParts = (record: FileRecord): readonly FileRecord[] => (isUi(record) ? partsOf(record['parts']) : [])

/** What only records of a format have. */
const OWN = {
  codex: (record) =>
    isObject(record['payload']) &&
    isType(record, /^(?:session_meta|response_item|event_msg|turn_context|compacted|world_state)$/),
  copilot: (record) => isType(record, /^[a-z]+\.[a-z_]+$/) && isObject(record['data']),
  qwen: (record) => Array.isArray(message(record)['parts']),
  droid: (record) =>
    isType(record, /^session_start$/) ||
    (isType(record, /^(?:message|tool_call)$/) && has(record, 'session_id')) ||
    (isType(record, /^message$/) && hasPart(message(record), /^tool_(?:use|result)$/)),
  openclaw: (record) => !isType(record, /^message$/) && /openclaw|clawdbot|moltbot/i.test(JSON.stringify(record)),
  pi: (record) =>
    isType(record, /^(?:session|model_change|thinking_level_change)$/) ||
    (isType(record, /^message$/) && isObject(record['message'])),
  claude: (record) =>
    (isType(record, /^(?:user|assistant)$/) && isObject(record['message'])) ||
    (isType(record, /^summary$/) && has(record, 'leafUuid')),
  cursor: (record) =>
    isType(record, /^turn_ended$/) || (!has(record, 'type') && isObject(record['message']) && hasRole(record)),
  gemini: (record) =>
    isType(record, /^gemini$/) ||
    has(record, 'sessionId', 'projectHash') ||
    (isType(record, /^user$/) && has(record, 'id', 'content')) ||
    (isUi(record) && uiParts(record).every((part) => type(part) === '')),
  grok: (record) =>
    (isType(record, /^(?:user|assistant|system|backend_tool_call)$/) &&
      !['message', 'role', 'id'].some((name) => has(record, name))) ||
    (isType(record, /^tool_result$/) && has(record, 'tool_call_id')),
  tanstack: (record) => uiParts(record).some((part) => typeof part['content'] === 'string' && !has(part, 'text')),
  aiSdkUi: (record) => uiParts(record).some((part) => type(part) !== ''),
  aiSdk: (record) => isMessage(record) && hasPart(record, /^(?:tool-call|tool-result|tool-approval-.+)$/),
  responses: (record) =>
    (isType(record, /^(?:[a-z_]+_call(?:_output)?|reasoning)$/) && !has(record, 'payload')) ||
    hasPart(record, /^(?:input|output)_(?:text|image|file)$/),
  anthropic: (record) =>
    isMessage(record) && hasPart(record, /^(?:tool_use|tool_result|thinking|.+_tool_(?:use|result))$/),
  chat: (record) => isMessage(record) || (hasRole(record) && has(record, 'tool_calls')),
  hermes: (record) => record['role'] === 'session_meta',
  nothing: () => false,
} satisfies Readonly<Record<string, (record: FileRecord) => boolean>>

/** The messages of a document, if one of them is of the format. */
function documentOf(isOwn: (record: FileRecord) => boolean): (document: FileRecord) => readonly FileRecord[] | null {
  return (document) => {
    const records = messagesIn(document)
    return records.some(isOwn) ? records : null
  }
}

function opencodeDocument(document: FileRecord): readonly FileRecord[] | null {
  const isStorage = Object.keys(document).some((path) => /(?:^|\/)(?:message|part|session)\//.test(path))
  const isExport = listOf(document['messages']).some((each) => isObject(inside(each)['info']))
  return isStorage || isExport ? [document] : null
}

/** All formats, those with the surest marks first: a record counts for the first whose it is. */
export const FORMATS = {
  codex: { isOwn: OWN.codex, read: readCodex, provider: 'openai' },
  copilot: { isOwn: OWN.copilot, read: readCopilot },
  qwen: { isOwn: OWN.qwen, read: readQwen, provider: 'qwen' },
  opencode: { isOwn: OWN.nothing, read: readOpencode, recordsOf: opencodeDocument },
  droid: { isOwn: OWN.droid, read: readDroid },
  openclaw: { isOwn: OWN.openclaw, read: readPi },
  pi: { isOwn: OWN.pi, read: readPi },
  'claude-code': { isOwn: OWN.claude, read: readClaudeCode, provider: 'anthropic' },
  cursor: { isOwn: OWN.cursor, read: readCursor },
  gemini: { isOwn: OWN.gemini, read: readGemini, provider: 'google', recordsOf: geminiRecords },
  grok: { isOwn: OWN.grok, read: readGrok, provider: 'xai' },
  hermes: {
    ...{ isOwn: OWN.hermes, read: readAnyMessage },
    recordsOf: (document) => (has(document, 'session_id', 'messages') ? messagesIn(document) : null),
  },
  'tanstack-ui': { isOwn: OWN.tanstack, read: readUiMessage, recordsOf: documentOf(OWN.tanstack) },
  'ai-sdk-ui': { isOwn: OWN.aiSdkUi, read: readUiMessage, recordsOf: documentOf(OWN.aiSdkUi) },
  'ai-sdk': { isOwn: OWN.aiSdk, read: readAnyMessage, recordsOf: documentOf(OWN.aiSdk) },
  'openai-responses': {
    ...{ isOwn: OWN.responses, read: readAnyMessage, provider: 'openai' },
    recordsOf: (document) => (has(document, 'input') || has(document, 'output') ? messagesIn(document) : null),
  },
  'anthropic-messages': {
    ...{ isOwn: OWN.anthropic, read: readAnyMessage, provider: 'anthropic' },
    recordsOf: documentOf(OWN.anthropic),
  },
  'openai-chat': { isOwn: OWN.chat, read: readAnyMessage, provider: 'openai', recordsOf: documentOf(OWN.chat) },
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
  // One mark of these two is enough, whose messages are like those of others.
  const sure = (['openclaw', 'droid'] as const).find((name) => counts.has(name))
  const plain = FORMAT_NAMES.slice(FORMAT_NAMES.indexOf('tanstack-ui'))
  // Plain messages are of any format beside them.
  const agents = [...counts].filter(([name]) => !plain.includes(name)).toSorted(([, one], [, other]) => other - one)
  return sure ?? agents[0]?.[0] ?? plain.find((name) => counts.has(name)) ?? null
}

/** The records of a format among the first ones are enough. */
const MOST_LOOKED_AT = 200

function recordsFor(name: FormatName, document: FileRecord): readonly FileRecord[] | null {
  const { recordsOf = () => null }: Format = FORMATS[name]
  return recordsOf(document)
}

/** The provider of a format's models. */
export function providerOf(name: FormatName): string {
  const { provider = 'unknown' }: Format = FORMATS[name]
  return provider
}

/** What a file holds, read as of a format. Nothing in it makes it fail. */
export function readSession(name: FormatName, { records, document }: SourceFile): Session {
  const session = new Session()
  const { read }: Format = FORMATS[name]
  const { session_id: id, sessionId, cwd, model } = document ?? {}
  session.about({ id: id ?? sessionId, cwd, model })
  for (const record of document === null ? records : (recordsFor(name, document) ?? [document])) read(session, record)
  return session
}
