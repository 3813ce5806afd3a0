import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { fileLog } from 'thinharness'
import type { MessageEnd, Sessions } from 'thinharness/session'
import { ScriptedModel } from 'thinharness/testing'
import { harnessOf, tool } from '../harness/support.js'
import { codeOf, said, sessionsOf, temporaryFolder } from './support.js'

/** Collects garbage again and again until the object is gone. Rejects after some seconds. */
async function collected(reference: WeakRef<object>): Promise<void> {
  setFlagsFromString('--expose_gc')
  const collect = runInNewContext('gc') as () => void
  onTestFinished(() => setFlagsFromString('--no-expose_gc'))
  const isGone = (): void => {
    collect()
    // An error with the object would hold it.
    expect(reference.deref() === undefined).toBe(true)
  }
  await vi.waitFor(isGone, { timeout: 15_000, interval: 20 })
}

/** Sends a message, waits for its end, and gives the thread back; the conversation is used no more. */
async function used(sessions: Sessions, threadId: string): Promise<WeakRef<object>> {
  const chat = await sessions.open(threadId)
  await (
    await chat.send('1')
  ).done
  await chat.release()
  return new WeakRef(chat)
}

function sessionsWith(model: ScriptedModel): Sessions {
  const where = tool('where', (_args, { root }) => root)
  return sessionsOf({ log: fileLog(temporaryFolder()), harness: harnessOf({ model, tools: [where] }) })
}

describe('a conversation in memory', () => {
  test('is one object for everyone who uses it, and leaves the memory when nobody does; it is read again from the log', async () => {
    const sessions = sessionsWith(new ScriptedModel().says('One.').says('Two.'))
    const unused = await used(sessions, 't1')
    const held = await sessions.open('t2')
    await collected(unused)
    expect(await sessions.open('t2')).toBe(held)
    const [chat, same] = await Promise.all([sessions.open('t1'), sessions.open('t1')])
    expect(same).toBe(chat)
    await (
      await chat.send('2')
    ).done
    expect(said(chat)).toEqual(['user: 1', 'assistant: One.', 'user: 2', 'assistant: Two.'])
  })

  test('stays while a sender waits for the end of a message', async () => {
    const sessions = sessionsWith(new ScriptedModel().fails('Not today.').says('Of another.').says('Two.'))
    const waits = async (): Promise<readonly [Promise<MessageEnd>]> => {
      const chat = await sessions.open('t1')
      const [first, second] = await Promise.all([chat.send('1'), chat.send('2')])
      // A run that failed holds the queue.
      expect((await first.done).status).toBe('failed')
      await chat.release()
      return [second.done]
    }
    const [done] = await waits()
    await collected(await used(sessions, 't2'))
    await (await sessions.open('t1')).queue.release()
    expect(await done).toMatchObject({ status: 'completed', text: 'Two.' })
  })

  test('stays with the means that it was given', async () => {
    const seen: string[] = []
    const where = tool('where', (_args, { root }) => (seen.push(root), 'there'))
    const model = new ScriptedModel().says('One.').says('Two.').calls('where').says('Three.')
    const sessions = sessionsOf({ log: fileLog(temporaryFolder()), harness: harnessOf({ model, tools: [where] }) })
    const root = temporaryFolder()
    await used(sessions, 't1')
    ;(await sessions.open('t1')).provide({ root })
    await collected(await used(sessions, 't2'))
    await (
      await (await sessions.open('t1')).send('2')
    ).done
    expect(seen).toEqual([root])
  })

  test('that was closed can be opened again', async () => {
    const sessions = sessionsWith(new ScriptedModel().says('One.').says('Two.'))
    await used(sessions, 't1')
    const closed = await sessions.open('t1')
    await closed.close()
    expect(await codeOf(closed.send('2'))).toContain('closed')
    const chat = await sessions.open('t1')
    expect((await (await chat.send('2')).done).text).toBe('Two.')
  })
})
