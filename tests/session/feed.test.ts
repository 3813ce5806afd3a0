import { expect, test, vi } from 'vitest'
import { memoryLog } from 'thinharness'
import type { ChatEvent, ChatSnapshot } from 'thinharness/session'
import { reduceChat } from 'thinharness/session'
import { ScriptedModel } from 'thinharness/testing'
import { harnessOf, tool } from '../harness/support.js'
import { gate, sessionsOf } from './support.js'

const TURNS = 40

/** A conversation whose replies are long, with its readers. */
async function longChat() {
  const { opened: asked, open: ask } = gate()
  const { opened, open: release } = gate()
  const model = new ScriptedModel().always(async ({ transcript, options }) => {
    const turn = transcript.filter(({ role }) => role === 'assistant').length
    if (turn === 0) {
      ask()
      await opened
    }
    for (let piece = 0; piece < 10; piece++) options.onDelta?.({ kind: 'text_delta', text: `${turn}.${piece} ` })
    const text = 'x'.repeat(40_000)
    return turn < TURNS ? { text, calls: [{ name: 'none', arguments: {} }] } : text
  })
  const sessions = sessionsOf({ log: memoryLog(), harness: harnessOf({ model, tools: [tool('none')] }) })
  const chat = await sessions.open('t1')
  const { done } = await chat.send('Go.')
  await asked
  return { chat, release, done }
}

function isLast({ kind }: ChatEvent): boolean {
  return kind === 'run_completed' || kind === 'run_failed'
}

async function read(events: AsyncIterable<ChatEvent>): Promise<readonly ChatEvent[]> {
  const seen: ChatEvent[] = []
  for await (const event of events) {
    seen.push(event)
    if (isLast(event)) break
  }
  return seen
}

test('SS-10 all readers of a conversation get the same objects: an object made of an event is made once', async () => {
  const { chat, release } = await longChat()
  const readers = [read(chat.events()), read(chat.events()), read(chat.events({ after: '1' }))]
  await new Promise((resolve) => setImmediate(resolve))
  release()
  const [one = [], two = [], three = []] = await Promise.all(readers)
  const live = one.filter(({ kind }) => kind === 'text_delta' || kind === 'model_message')
  expect(live.length).toBeGreaterThan(TURNS)
  for (const other of [two, three]) for (const event of live) expect(other.includes(event)).toBe(true)
})

test('XL-04 XL-12 a reader that is too far behind gets the rest from the log, and the same conversation', async () => {
  const { chat, release, done } = await longChat()
  const slow = chat.events()[Symbol.asyncIterator]()
  const first = await slow.next()
  release()
  await done
  const seen: ChatEvent[] = first.done === true ? [] : [first.value]
  while (!isLast(seen.at(-1)!)) {
    const next = await slow.next()
    if (next.done === true) break
    seen.push(next.value)
  }
  const places = seen.filter(({ durable }) => durable).map((event) => `${'threadId' in event} ${event.seq}`)
  expect(new Set(places).size).toBe(places.length)
  let snapshot: ChatSnapshot | undefined
  for (const event of seen) snapshot = reduceChat(snapshot, event)
  expect(snapshot?.runs).toEqual(chat.snapshot.runs)
})

test('a reader follows although the store fails at the moment when it begins', async () => {
  const log = memoryLog()
  const sessions = () => sessionsOf({ log, harness: harnessOf({ model: new ScriptedModel().always('Done.') }) })
  const first = sessions()
  await first.open('t1')
  await first.close()
  const chat = await sessions().open('t1')
  vi.spyOn(log, 'inspect').mockRejectedValueOnce(new Error('Down.'))
  const reading = read(chat.events())
  const { done } = await (await sessions().open('t1')).send('Go.')
  expect(await done).toMatchObject({ status: 'completed' })
  expect((await reading).at(-1)).toMatchObject({ kind: 'run_completed' })
})

test('a reader can begin at the end: the snapshot and what happens from then on are the next snapshot', async () => {
  const model = new ScriptedModel().says('One.').says('Two.')
  const chat = await sessionsOf({ harness: harnessOf({ model }) }).open()
  await (
    await chat.send('One?')
  ).done
  let { snapshot } = chat
  const events = chat.events({ after: 'end' })
  await chat.rename('Both')
  const { done } = await chat.send('Two?')
  const seen = await read(events)
  expect(seen[0]).toMatchObject({ kind: 'title_changed', seq: snapshot.thread.seq + 1 })
  for (const event of seen) snapshot = reduceChat(snapshot, event)
  await done
  expect(snapshot.runs).toEqual(chat.snapshot.runs)
  expect(await read(chat.events({ after: 'end', live: false }))).toEqual([])
})
