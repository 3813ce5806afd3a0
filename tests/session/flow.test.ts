import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { defineTool, Harness } from 'thinharness'
import type { HarnessOptions, LogStore, RunEvent, ToolContext } from 'thinharness'
import type { Chat, ChatEvent } from 'thinharness/session'
import { ScriptedModel } from 'thinharness/testing'
import { harnessOf, tool } from '../harness/support.js'
import { allStores, gate, said, sessionsOf, until } from './support.js'

/** A tool that ends when its run is cancelled. */
const never = tool('never', (_args, { signal }) => new Promise((_, reject) => signal.addEventListener('abort', reject)))

async function started(chat: Chat, prompt = 'Go.'): ReturnType<Chat['send']> {
  const sent = await chat.send(prompt)
  await until(chat, ({ kind }) => kind === 'tool_call_started')
  return sent
}

/** Every stored event of the conversation. */
async function stored(chat: Chat): Promise<readonly ChatEvent[]> {
  const over = new AbortController()
  const events: ChatEvent[] = []
  const last = chat.snapshot.runs.at(-1)
  for await (const event of chat.events({ signal: over.signal })) {
    if (event.durable) events.push(event)
    if ('runId' in event && event.runId === last?.runId && event.seq === last.seq) break
  }
  over.abort()
  return events
}

function kindsOf(events: readonly ChatEvent[], ...kinds: readonly RunEvent['kind'][]): readonly string[] {
  return events.flatMap(({ kind }) => ((kinds as readonly string[]).includes(kind) ? [kind] : []))
}

describe.each(await allStores())('the flow of a conversation in the %s log', (_name, open: () => LogStore) => {
  test('SB-59 each stretch of a run has one start and one end: success, failure, cancellation, pause and answer', async () => {
    const ask = tool('ask', (_args, context) => context.ask({ q: 'Sure?' }, z.string()))
    const model = new ScriptedModel().says('Fine.').replies({ fault: 'error', error: new Error('Down.') })
    model.calls('never').calls('ask').says('As you say.').calls('ask')
    const chat = await sessionsOf({ log: open(), harness: harnessOf({ model, tools: [never, ask] }) }).open()
    for (const prompt of ['1', '2']) await (await chat.send(prompt)).done
    await started(chat, '3')
    await chat.cancel()
    await (
      await chat.send('4')
    ).done
    await chat.answer([{ callId: chat.pending[0]?.callId ?? '', answer: 'Yes.' }])
    await chat.whenIdle()
    await (
      await chat.send('5')
    ).done
    await chat.cancel()
    expect(kindsOf(await stored(chat), 'run_started', 'run_completed', 'run_failed')).toEqual([
      ...['run_started', 'run_completed', 'run_started', 'run_failed', 'run_started', 'run_failed'],
      ...['run_started', 'run_completed', 'run_started', 'run_completed'],
      // A pause that is cancelled is no stretch.
      ...['run_started', 'run_completed', 'run_failed'],
    ])
    expect(chat.snapshot.runs.map(({ status }) => status)).toEqual([
      ...['completed', 'failed', 'cancelled', 'completed', 'cancelled'],
    ])
  })

  test('SB-63 a message that is sent while a run is being cancelled is answered by a run of its own', async () => {
    for (let round = 0; round < 10; round += 1) {
      const model = new ScriptedModel().calls('never').always('Answered.')
      const chat = await sessionsOf({ log: open(), harness: harnessOf({ model, tools: [never] }) }).open()
      const first = await started(chat)
      const cancelling = chat.cancel()
      for (let tick = 0; tick < round; tick += 1) await Promise.resolve()
      const sent = await chat.send('And now?')
      await cancelling
      if (chat.queue.held) await chat.queue.release()
      expect(await sent.done).toMatchObject({ status: 'completed', text: 'Answered.' })
      expect((await first.done).status).toBe('cancelled')
      expect((await sent.done).runId).not.toBe((await first.done).runId)
    }
  })

  test('SB-64 a cancelled reply keeps its text as `cancelled`, and the queue is held', async () => {
    const model = new ScriptedModel().replies(({ options }) => {
      options.onDelta?.({ kind: 'text_delta', text: 'Once upon' })
      return new Promise((_, reject) => options.signal.addEventListener('abort', () => reject(new Error('Aborted.'))))
    })
    const chat = await sessionsOf({ log: open(), harness: harnessOf({ model }) }).open()
    const sent = await chat.send('Tell me.')
    await until(chat, ({ kind }) => kind === 'text_delta')
    await chat.send('Later.')
    await chat.cancel()
    expect((await sent.done).status).toBe('cancelled')
    const entry = chat.snapshot.runs[0]?.entries.at(-1)
    expect(entry).toMatchObject({ parts: [{ type: 'text', text: 'Once upon' }], finishReason: 'cancelled' })
    expect([chat.phase, chat.queue.held, chat.queue.list().length]).toEqual(['idle', true, 1])
  })

  test('SB-66 a run that is cancelled twice, also by its readers, has one end', async () => {
    const model = new ScriptedModel().calls('never').says('Fine.')
    const chat = await sessionsOf({ log: open(), harness: harnessOf({ model, tools: [never] }) }).open()
    const sent = await started(chat)
    await Promise.all([chat.cancel(), chat.cancel()])
    await chat.cancel()
    expect((await sent.done).status).toBe('cancelled')
    expect(kindsOf(await stored(chat), 'run_completed', 'run_failed')).toEqual(['run_failed'])
  })

  test('SB-70 a steering message during the last reply is answered by the same run', async () => {
    const { opened, open: release } = gate()
    const model = new ScriptedModel().replies(async () => {
      await opened
      return 'Almost.'
    })
    model.says('Now with that.')
    const chat = await sessionsOf({ log: open(), harness: harnessOf({ model }) }).open()
    const sent = await chat.send('Go.')
    await until(chat, ({ kind }) => kind === 'model_request_started')
    const steer = await chat.steer('One more thing.')
    release()
    expect(await steer.done).toMatchObject({ text: 'Now with that.', runId: (await sent.done).runId })
    expect(chat.snapshot.runs).toHaveLength(1)
    const again = await chat.steer('One more thing.', { messageId: steer.messageId })
    expect([again.status, (await again.done).text]).toEqual(['steered', 'Now with that.'])
    expect((await chat.send('Go.', { messageId: sent.messageId })).status).toBe('started')
  })

  test('SB-71 a steering message that the run did not read heads the held queue', async () => {
    const model = new ScriptedModel().calls('never').says('First.').says('Second.')
    const chat = await sessionsOf({ log: open(), harness: harnessOf({ model, tools: [never] }) }).open()
    await started(chat)
    const queued = await chat.send('Second?')
    const steer = await chat.steer('First?')
    await chat.cancel()
    expect(chat.queue.held).toBe(true)
    expect(chat.queue.list().map(({ messageId }) => messageId)).toEqual([steer.messageId, queued.messageId])
    await chat.queue.release()
    expect((await steer.done).text).toBe('First.')
    expect((await queued.done).text).toBe('Second.')
  })

  test('SB-76 a reply that was filtered, cut off or broken off is a failed message with a reason', async () => {
    for (const [line, code] of [
      [{ text: 'No', finishReason: 'content_filter' }, 'unexpected_model_behavior'],
      [{ text: 'Half', finishReason: 'length' }, 'unexpected_model_behavior'],
      [{ fault: 'error', error: new Error('Broken off.') }, 'error'],
    ] as const) {
      const model = new ScriptedModel().replies(line)
      const chat = await sessionsOf({ log: open(), harness: harnessOf({ model }) }).open()
      const end = await (await chat.send('Go.')).done
      expect(end.status).toBe('failed')
      expect(end).toMatchObject({ error: { code } })
      expect(chat.snapshot.runs[0]).toMatchObject({
        status: 'failed',
        error: { message: expect.any(String) as string },
      })
    }
  })

  test('SB-80 the metadata and the `deps` of a message reach its tools, also after a restart and an answer', async () => {
    const log = open()
    const seen: unknown[] = []
    const note = defineTool({
      name: 'note',
      description: 'Notes.',
      parameters: z.object({}),
      requiresApproval: true,
      handler: (_args, { deps, metadata }: ToolContext<{ readonly db: string }>) =>
        void seen.push([deps, metadata['order']]),
    })
    const model = new ScriptedModel().calls('note').always('Noted.')
    const deps: HarnessOptions<string, { readonly db: string }>['deps'] = ({ metadata }) => ({
      db: `db of ${JSON.stringify(metadata['order'])}`,
    })
    const options = { log, harness: new Harness({ builtinTools: [], model, tools: [note], deps }) }
    const first = sessionsOf(options)
    const chat = await first.open('t1')
    await (
      await chat.send('Note it.', { metadata: { order: 'o7' } })
    ).done
    await first.close()
    const again = await sessionsOf(options).open('t1')
    await again.answer([{ callId: again.pending[0]?.callId ?? '', approved: true }])
    await again.whenIdle()
    expect(seen).toEqual([[{ db: 'db of "o7"' }, 'o7']])
    expect(said(again).at(-1)).toBe('assistant: Noted.')
  })

  test('SB-79 each run of a conversation has its usage, children included; a restart reads the same', async () => {
    const log = open()
    const child = tool('child', async (_args, context) => (await context.spawn({ prompt: 'Count.' }).result).text)
    const usage = { inputTokens: 10, outputTokens: 2 }
    const model = new ScriptedModel()
      .replies({ calls: [{ name: 'child', arguments: {} }], usage })
      .replies({ text: 'Two.', usage })
      .replies({ text: 'Done.', usage })
      .replies({ text: 'Again.', usage })
    const first = sessionsOf({ log, harness: harnessOf({ model, tools: [child] }) })
    const chat = await first.open('t1')
    for (const prompt of ['1', '2']) await (await chat.send(prompt)).done
    const used = chat.snapshot.runs.map((run) => [run.usage?.inputTokens, run.usage?.outputTokens])
    expect(used).toEqual([
      [30, 6],
      [10, 2],
    ])
    const before = JSON.stringify(chat.snapshot.runs.map((run) => run.usage))
    await first.close()
    const again = await sessionsOf({ log, harness: harnessOf({ model }) }).open('t1')
    expect(JSON.stringify(again.snapshot.runs.map((run) => run.usage))).toBe(before)
  })
})
