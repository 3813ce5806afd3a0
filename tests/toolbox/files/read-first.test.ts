import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { Harness, memoryLog } from 'thinharness'
import type { HarnessOptions, JsonObject, TranscriptEntry } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import type { ScriptedCall } from 'thinharness/testing'
import { fileTools } from 'thinharness/tools'
import { eventsIn, logWith } from '../../run/resume/pause-support.js'
import { tool } from '../../harness/support.js'
import { call, folderWith, textOf } from '../support.js'

type Call = readonly [name: string, args: JsonObject]

const READ: Call = ['read', { path: 'a.txt' }]
const WRITE: Call = ['write', { path: 'a.txt', content: 'three' }]
const NOT_READ = 'a.txt has not been read in this conversation: read it first, and change it in a later turn'
const CHANGED = 'a.txt has changed since you read it: read it again'

function edit(from: string, to: string, path = 'a.txt'): Call {
  return ['edit', { edits: [{ path, old_string: from, new_string: to }] }]
}

/** A tool of the host that changes the file. */
function changing(root: string) {
  return tool('change', async () => writeFile(join(root, 'a.txt'), 'one changed'))
}

/** A run that makes these calls, one in each turn; a list makes several in one turn. */
async function runOf(root: string, turns: readonly (Call | readonly Call[])[], options: Partial<HarnessOptions> = {}) {
  const model = new ScriptedModel()
  for (const turn of turns) model.callsAll(isCall(turn) ? [scripted(turn)] : turn.map(scripted))
  model.says('Done.')
  await using harness = new Harness({ model, root, ...options })
  const { transcript, runId } = await harness.run('Go.', { ...(options.log && { runId: 'run_1' }) })
  return { transcript, runId, contents: contentsIn(transcript) }
}

function isCall(turn: Call | readonly Call[]): turn is Call {
  return typeof turn[0] === 'string'
}

function scripted([name, args]: Call): ScriptedCall {
  return { name, arguments: args }
}

function contentsIn(transcript: readonly TranscriptEntry[]): readonly string[] {
  return transcript.flatMap((entry) => (entry.role === 'tool' ? [contentOf(entry.content)] : []))
}

function contentOf(envelope: unknown): string {
  return (JSON.parse(envelope as string) as { readonly content: string }).content
}

describe('a file has to be read before it is changed', () => {
  test('FT-85 `edit` and an overwriting `write` of a file that was not read fail in words, and change nothing', async () => {
    const root = await folderWith({ 'a.txt': 'one' })
    const { contents } = await runOf(root, [edit('one', 'two'), WRITE, READ, edit('one', 'two'), WRITE])
    expect(contents).toEqual([
      `1. FAILED a.txt: ${NOT_READ}`,
      NOT_READ,
      'one',
      '1. ok a.txt: replaced 1 occurrence(s)',
      'wrote 5 bytes to a.txt',
    ])
    expect(await textOf(root, 'a.txt')).toBe('three')
  })

  test('the failure is ordinary: it uses no retry, and names its kind', async () => {
    const root = await folderWith({ 'a.txt': 'one' })
    const model = new ScriptedModel().calls('write', WRITE[1]).says('Done.')
    const { usage, toolCallRecords } = await new Harness({ model, root, toolRetries: 0 }).run('Go.')
    expect(usage.toolRetries).toEqual({})
    expect(JSON.parse(toolCallRecords[0]?.output ?? '')).toMatchObject({ metadata: { error_type: 'NotRead' } })
  })

  test('a file that changed since it was read has to be read again', async () => {
    const root = await folderWith({ 'a.txt': 'one' })
    const turns = [READ, ['change', {}], edit('one', 'two'), WRITE, READ, edit('one', 'two')] as const
    const { contents } = await runOf(root, turns, { tools: [changing(root)] })
    expect(contents.slice(2)).toEqual([
      `1. FAILED a.txt: ${CHANGED}`,
      CHANGED,
      'one changed',
      '1. ok a.txt: replaced 1 occurrence(s)',
    ])
  })

  test('files that the model wrote count as read, in the same reply too; a read in the same reply does not', async () => {
    const root = await folderWith({ 'a.txt': 'one' })
    const create: Call = ['write', { path: 'new.txt', content: 'one' }]
    const append: Call = ['write', { path: 'new.txt', content: ' more', append: true }]
    const { contents } = await runOf(root, [
      [create, append, edit('one', 'two', 'new.txt'), edit('two', 'three', 'new.txt')],
      [READ, WRITE],
      [WRITE, edit('three', 'four')],
    ])
    expect(contents[2]).toBe('1. ok new.txt: replaced 1 occurrence(s)')
    expect(contents[3]).toBe('1. ok new.txt: replaced 1 occurrence(s)')
    expect(contents.slice(5)).toEqual([NOT_READ, 'wrote 5 bytes to a.txt', '1. ok a.txt: replaced 1 occurrence(s)'])
    expect(await textOf(root, 'new.txt')).toBe('three more')
  })

  test('appending needs no reading, and makes only a known file known', async () => {
    const root = await folderWith({ 'a.txt': 'one' })
    const append: Call = ['write', { path: 'a.txt', content: ' more', append: true }]
    const { contents } = await runOf(root, [append, WRITE, READ, append, WRITE])
    expect(contents.slice(1)).toEqual([NOT_READ, 'one more', 'appended 5 bytes to a.txt', 'wrote 5 bytes to a.txt'])
  })

  test('part of a file is enough, and several edits of one call follow each other', async () => {
    const root = await folderWith({ 'a.txt': 'one\ntwo\nthree\n' })
    const both = [edit('one', '1'), edit('two', '2')].flatMap(([, { edits }]) => edits as readonly JsonObject[])
    const part: Call = ['read', { path: 'a.txt', offset: 3, limit: 1 }]
    const { contents } = await runOf(root, [part, ['edit', { edits: both }], WRITE])
    expect(contents[1]).not.toContain('FAILED')
    expect(contents[2]).toBe('wrote 5 bytes to a.txt')
  })

  test('files that were read are known after a crash, in a further run of the conversation, and in no other', async () => {
    const root = await folderWith({ 'a.txt': 'one' })
    const log = memoryLog()
    const { transcript } = await runOf(root, [READ], { log })
    const model = new ScriptedModel().calls('edit', edit('one', 'two')[1]).says('Done.')
    const next = await new Harness({ model, root }).run('Edit.', { history: transcript })
    expect(contentsIn(next.transcript).at(-1)).toBe('1. ok a.txt: replaced 1 occurrence(s)')
    expect((await runOf(root, [WRITE])).contents).toEqual([NOT_READ])

    await writeFile(join(root, 'a.txt'), 'one')
    const events = await eventsIn(log, 'run_1')
    const cut = events.findLastIndex(({ kind }) => kind === 'model_request_started')
    const again = new ScriptedModel().calls('edit', edit('one', 'two')[1]).says('Done.')
    const recovered = new Harness({ model: again, root, log: await logWith(events.slice(0, cut)) })
    expect(contentsIn((await recovered.recover('run_1')).transcript).at(-1)).toContain('1. ok a.txt')
    expect(await textOf(root, 'a.txt')).toBe('two')
  })

  test('a person may approve an edit later: a change in between is noticed', async () => {
    const root = await folderWith({ 'a.txt': 'one' })
    const model = new ScriptedModel().calls('read', READ[1]).calls('write', WRITE[1]).says('Done.')
    const [write, ...rest] = [...fileTools()].sort(({ name }) => (name === 'write' ? -1 : 1))
    const tools = [{ ...write!, requiresApproval: true }, ...rest]
    await using harness = new Harness({ model, root, builtinTools: [], tools })
    const paused = await harness.run('Go.')
    await writeFile(join(root, 'a.txt'), 'changed by a person')
    const [item] = paused.pending
    const ended = await harness.resume(paused.runId, [{ callId: item?.callId ?? '', approved: true }])
    expect(contentsIn(ended.transcript).at(-1)).toBe(CHANGED)
    expect(await textOf(root, 'a.txt')).toBe('changed by a person')
  })

  test('`requireRead: false`, a run without `read` and calls outside a run require nothing', async () => {
    const root = await folderWith({ 'a.txt': 'one' })
    const free = { builtinTools: [], tools: fileTools({ requireRead: false }) }
    expect((await runOf(root, [WRITE], free)).contents).toEqual(['wrote 5 bytes to a.txt'])
    expect((await runOf(root, [WRITE], { builtinTools: ['write'] })).contents).toEqual(['wrote 5 bytes to a.txt'])
    const [, write] = fileTools({ root })
    expect(await call(write!, WRITE[1])).toMatchObject({ ok: true })
    expect(() => fileTools({ requireRead: 1 as never })).toThrow('`requireRead`')
  })

  test('a tool of the host reads the results of earlier calls in the same way', async () => {
    const root = await folderWith({ 'a.txt': 'one' })
    const seen: unknown[] = []
    const look = tool('look', (_, { results }) => {
      for (const { toolName, isSeen, content } of results?.(['read']) ?? []) seen.push([toolName, isSeen, content])
      seen.push(results?.(['missing']))
    })
    await runOf(root, [READ, ['look', {}]], { tools: [look] })
    expect(seen).toEqual([['read', true, 'one'], null])
  })
})
