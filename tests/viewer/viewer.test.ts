import { describe, expect, test } from 'vitest'
import { fileLog, memoryLog } from 'thinharness'
import type { DurableEvent, LogStore } from 'thinharness'
import { Sessions } from 'thinharness/session'
import { ScriptedModel } from 'thinharness/testing'
import { viewer } from 'thinharness/viewer'
import { harnessOf, told, tool } from '../harness/support.js'
import { collect, eventsOfRun } from '../support/collect.js'
import { temporaryFolder } from '../support/folder.js'
import { bookOf, dataOf, TEMPLATE, textOf } from './support.js'

/** A log with a run and its child run. */
async function twoRuns(log: LogStore = memoryLog()): Promise<LogStore> {
  const model = new ScriptedModel().calls('subagent', { agent: 'clerk', task: 'Count.' }).says('Done.')
  const clerk = { name: 'clerk', description: 'Counts.', tools: [], model: new ScriptedModel().says('Three.') }
  await harnessOf({ log, model, subagents: [clerk] }).run('Say <b>&amp;</b> $& and "more".', { runId: 'run_1' })
  return log
}

describe('viewer()', () => {
  test('VW-03 gives the log byte for byte as `export` does, child runs included', async () => {
    for (const log of [await twoRuns(), await twoRuns(fileLog(temporaryFolder()))]) {
      const book = await bookOf(log, { runId: 'run_1' })
      expect(book.runIds).toHaveLength(2)
      for (const runId of book.runIds) {
        const text = textOf(await collect(log.export(runId)))
        expect(new TextDecoder().decode(book.bytesOf(runId))).toBe(text)
      }
      // From events and from the text of a file: the same.
      const events = (await Promise.all(book.runIds.map((runId) => eventsOfRun(log, runId)))).flat()
      for (const source of [events, textOf(events)])
        for (const runId of book.runIds) expect((await bookOf(source)).bytesOf(runId)).toEqual(book.bytesOf(runId))
    }
  })

  test('VW-03 keeps the lines of a file as they are, broken ones too', async () => {
    const lines = textOf(await eventsOfRun(await twoRuns(), 'run_1'))
      .trimEnd()
      .split('\n')
    for (const text of [lines.join('\n').slice(0, -9), `${lines.with(2, '{"kind": 7').join('\n')}\n`]) {
      const book = await bookOf(text)
      expect(new TextDecoder().decode(book.bytesOf('run_1'))).toBe(text)
    }
  })

  test('VW-02 with 5,000 turns is far smaller than its log', async () => {
    const words =
      'order packed monday left warehouse tuesday carrier lost found again town brought friday box wet cups'.split(' ')
    let random = 7
    const text = (count: number): string =>
      Array.from({ length: count }, () => words[(random = (random * 48_271) % 0x7fff_ffff) % words.length]).join(' ')
    const events: object[] = []
    const add = (kind: string, members: object): void => {
      const at = new Date(Date.UTC(2026, 0, 1) + events.length * 400).toISOString()
      events.push({ kind, runId: 'run_1', seq: events.length + 1, at, durable: true, parentRunId: null, ...members })
    }
    add('run_started', { prompt: 'Go.', version: 3, history: [], rules: { limits: {} } })
    for (let turn = 1; turn <= 5000; turn++) {
      const call = { callId: `call_${turn}`, toolName: 'look', toolIndex: 0 }
      const parts = [
        { type: 'text', text: text(60) },
        { type: 'tool_call', ...call, name: 'look', arguments: '{}' },
      ]
      add('model_request_started', { requestKind: 'tool_outputs', provider: 'p', model: 'm', entries: [], notices: [] })
      add('model_message', { entry: { role: 'assistant', parts, usage: {} }, resolution: { kind: 'continue' } })
      add('tool_call_started', { ...call, arguments: '{}' })
      add('tool_call_completed', { ...call, ok: true, output: JSON.stringify({ ok: true, content: text(200) }) })
    }
    const log = textOf(events)
    expect(log.length).toBeGreaterThan(12_000_000)
    expect((await viewer(log, { page: TEMPLATE })).length).toBeLessThan(4_200_000)
  }, 60_000)

  test('VW-24 changes events by `redact` before they are written, those of child runs too', async () => {
    const log = await twoRuns()
    const seen: string[] = []
    const book = await bookOf(log, {
      runId: 'run_1',
      redact: (event) => {
        seen.push(event.runId)
        if (event.kind === 'tool_call_completed') return null
        return JSON.parse(JSON.stringify(event).replaceAll('Count.', '[removed]')) as typeof event
      },
    })
    expect(new Set(seen).size).toBe(2)
    expect(book.header.redacted).toBe(true)
    const text = book.runIds.map((runId) => new TextDecoder().decode(book.bytesOf(runId))).join('')
    expect(text).not.toContain('Count.')
    expect(text).toContain('[removed]')
    expect(book.childrenOf('run_1')[0]?.prompt).toBe('[removed]')
    // A line that is broken could not be redacted.
    const broken = `${textOf(await eventsOfRun(log, 'run_1'))}{"kind":"secret`
    const lines = (await bookOf(broken, { redact: (event) => event })).log('run_1')?.text
    expect(lines).not.toContain('secret')
  })

  test('VW-08 has a title that is text, and the data in a form that needs no escaping', async () => {
    const page = await viewer(await twoRuns(), { runId: 'run_1', page: TEMPLATE })
    expect(page).toContain('<title>Say &lt;b>&amp;amp;&lt;/b> $&amp; and "more".</title>')
    expect(page).toContain("connect-src 'none'")
    expect((await dataOf(page)).header.title).toBe('Say <b>&amp;</b> $& and "more".')
    await expect(viewer([], { page: TEMPLATE })).rejects.toMatchObject({ code: 'run_not_found' })
    await expect(viewer(await twoRuns(), { page: '<html>' })).rejects.toThrow(
      'Expected `page` to contain `<!--logs-->`.',
    )
  })

  test('of a log has its newest runs with what a list shows of them', async () => {
    const log = memoryLog()
    for (const [index, prompt] of ['One.', 'Two.', 'Three.'].entries())
      await harnessOf({ log, model: new ScriptedModel().says('Yes.') }).run(prompt, { runId: `run_${index}` })
    await expect(
      harnessOf({ log, model: new ScriptedModel(), tools: [tool('x')] }).run('No.', { runId: 'run_3' }),
    ).rejects.toThrow()
    const book = await bookOf(log, { limit: 3 })
    expect(book.header.root).toBeNull()
    expect(book.roots.map(({ runId, summary }) => [runId, summary?.status, summary?.prompt, summary?.turns])).toEqual([
      ['run_3', 'failed', 'No.', 1],
      ['run_2', 'completed', 'Three.', 1],
      ['run_1', 'completed', 'Two.', 1],
    ])
  })

  test('of a conversation has its runs, one after the other, without those that were replaced', async () => {
    const log = memoryLog()
    const sessions = new Sessions({ log, harness: harnessOf({ model: new ScriptedModel().always(() => 'Yes.') }) })
    const chat = await sessions.for({ resourceId: 'me' }).create({ threadId: 'notes' })
    for (const text of ['First.', 'Second.']) await (await chat.send(text)).done
    await sessions.close()
    const book = await bookOf(log, { threadId: 'notes' })
    expect(book.header).toMatchObject({ threadId: 'notes', title: 'notes', root: null })
    expect(book.roots.map(({ summary, threadId }) => [summary?.prompt, threadId])).toEqual([
      ['First.', 'notes'],
      ['Second.', 'notes'],
    ])
    await expect(bookOf(log, { threadId: 'other' })).rejects.toThrow('The log has no conversation `other`.')
  })

  test('names what is not there', async () => {
    const log = await twoRuns()
    await expect(bookOf(log, { runId: 'run_9' })).rejects.toThrow('The log has no run `run_9`.')
    await expect(bookOf(log, { runId: 'run_1', compare: 'run_9' })).rejects.toThrow('The log has no run `run_9`.')
    await expect(bookOf('{"a":1}\n', {})).rejects.toThrow('There are no events of a run.')
    const events = await eventsOfRun(log, 'run_1')
    await expect(bookOf(events, { runId: 'run_9' })).rejects.toThrow('There are no events of run `run_9`.')
    const plain = { append: () => Promise.resolve(), read: () => eventsAgain(events) }
    await expect(bookOf(plain)).rejects.toThrow('Expected `runId` with a log that cannot list its runs.')
    expect((await bookOf(plain, { runId: 'run_1' })).run('run_1')?.turns).toHaveLength(2)
  })

  test('VW-07 shows a stored log that cannot be read to its end as far as it goes', async () => {
    const events = await eventsOfRun(await twoRuns(), 'run_1')
    async function* cut(): AsyncGenerator<DurableEvent> {
      yield* events.slice(0, 3)
      throw new Error('Sector 7 is bad.')
    }
    const book = await bookOf({ append: () => Promise.resolve(), read: cut } as never, { runId: 'run_1' })
    expect(book.run('run_1')?.turns).toHaveLength(1)
    expect(book.run('run_1')?.damage).toEqual([
      { line: 4, kind: 'broken', message: expect.stringContaining('Sector 7 is bad.') as string },
    ])
  })

  test('VW-11 keeps what a live stream has beside the log, such as deltas', async () => {
    const { events } = await told(
      harnessOf({ model: new ScriptedModel().says('Word by word.') }).stream('Go.', { deltas: true }),
    )
    const book = await bookOf(events)
    expect(book.log(events[0]?.runId ?? '')?.text).toContain('"text_delta"')
    expect(book.run(events[0]?.runId ?? '')).toMatchObject({ state: 'completed', open: null })
  })
})

async function* eventsAgain(events: readonly DurableEvent[]): AsyncGenerator<DurableEvent> {
  yield* events
}
