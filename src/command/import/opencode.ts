import { isObject } from '#util/json.js'
import { inside, listOf, textIn, timeOf, usageOf } from './record-fields.js'
import { readUser } from './message-parts.js'
import { costOf } from './pi.js'
import type { FileRecord, Session } from './session.js'

interface OpencodeMessage {
  readonly info: FileRecord
  readonly parts: readonly FileRecord[]
}

/** opencode: the files of its storage as one object, path → content, or what `opencode export` writes. */
export function readOpencode(session: Session, document: FileRecord): void {
  const messages = Array.isArray(document['messages']) ? exported(document) : stored(document)
  const info = Array.isArray(document['messages']) ? inside(document, 'info') : (under(document, 'session')[0] ?? {})
  session.about({ id: info['id'], cwd: info['directory'], version: info['version'] })
  for (const message of messages) readOpencodeMessage(session, message)
}

function exported(document: FileRecord): readonly OpencodeMessage[] {
  return listOf(document['messages']).map((message) => ({
    info: inside(message, 'info'),
    parts: listOf(inside(message)['parts']).filter((part) => isObject(part)),
  }))
}

function stored(document: FileRecord): readonly OpencodeMessage[] {
  const parts = under(document, 'part')
  const created = (info: FileRecord): string => timeOf(inside(info, 'time')['created']) ?? ''
  return under(document, 'message')
    .toSorted((one, other) => (created(one) < created(other) ? -1 : Number(created(one) > created(other))))
    .map((info) => ({ info, parts: parts.filter(({ messageID }) => messageID === info['id']) }))
}

/** The contents of the files below a folder, in the order of their names. */
function under(document: FileRecord, folder: string): readonly FileRecord[] {
  return Object.keys(document)
    .filter((path) => path.startsWith(`${folder}/`) || path.includes(`/${folder}/`))
    .toSorted()
    .flatMap((path) => (isObject(document[path]) ? [document[path]] : []))
}

function readOpencodeMessage(session: Session, { info, parts }: OpencodeMessage): void {
  const at = timeOf(inside(info, 'time')['created'])
  const { role } = info
  if (role === 'user') {
    for (const part of parts) if (!OPENCODE_PARTS.has(part['type'] as string)) session.leave(part['type'])
    const own = parts.filter(({ type, synthetic }) => (type === 'text' || type === 'file') && synthetic !== true)
    if (parts.some(({ type }) => type === 'compaction')) session.compaction()
    return readUser(session, own, { at })
  }
  if (role !== 'assistant') return session.leave(role)
  session.reply({
    ...{ id: textIn(info['id']), at, usage: usageOf(info['tokens']), costUsd: costOf(info['cost']) },
    ...{ provider: textIn(info['providerID']), model: textIn(info['modelID']) },
  })
  for (const part of parts) readOpencodePart(session, part, at)
}

function readOpencodePart(session: Session, part: FileRecord, at: string | null): void {
  switch (part['type']) {
    case 'text':
      if (part['synthetic'] !== true) session.text(part['text'])
      return
    case 'reasoning':
      return session.reasoning(part['text'])
    case 'compaction':
      return session.compaction()
    case 'tool': {
      const { input, output, error, status, time } = inside(part, 'state')
      session.call({ id: part['callID'], name: part['tool'], input })
      if (status !== 'completed' && status !== 'error') return
      const ended = timeOf(inside(time)['end']) ?? at
      const content = textIn(output) ?? textIn(error) ?? ''
      return session.result({ id: part['callID'], content, isError: status === 'error', at: ended })
    }
    default:
      if (!OPENCODE_PARTS.has(part['type'] as string)) session.leave(part['type'])
  }
}

const OPENCODE_PARTS = new Set([
  ...['text', 'file', 'compaction', 'step-start', 'step-finish', 'snapshot', 'patch', 'agent', 'retry', 'subtask'],
])
