import { describe, expect, onTestFinished, test } from 'vitest'
import { Sessions } from 'thinharness/session'
import { ScriptedModel } from 'thinharness/testing'
import { createHandlers, localOnly } from 'thinharness/ui'
import { runTransport } from 'thinharness/ui/client'
import { harnessOf } from '../../harness/support.js'

function sessionsOf(): Sessions {
  const sessions = new Sessions({ harness: harnessOf({ model: new ScriptedModel() }) })
  onTestFinished(() => sessions.close())
  return sessions
}

describe('an option that does not exist is refused, with the nearest name', () => {
  test.each<[object, string]>([
    [{ autorize: localOnly }, 'Did you mean `authorize`?'],
    [{ maxBodyByte: 1 }, 'Did you mean `maxBodyBytes`?'],
    [{ aiSdk: { staticTool: [] } }, 'Did you mean `staticTools`?'],
    [{ responses: { model: {} } }, 'Did you mean `models`?'],
    [{ authorize: true }, 'Expected `authorize`'],
    [{ remember: ['all'] }, 'Expected `remember[0]`'],
  ])('by createHandlers: %j', (options, message) => {
    expect(() => createHandlers({ sessions: sessionsOf(), authorize: localOnly, ...options })).toThrow(message)
  })

  test.each<[object, string]>([
    [{ whenBussy: 'reject' }, 'Did you mean `whenBusy`?'],
    [{ messageID: 'm1' }, 'Did you mean `messageId`?'],
    [{ whenBusy: 'stear' }, 'whenBusy'],
  ])('by chat.send and chat.steer: %j', async (options, message) => {
    const chat = await sessionsOf().open('t1')
    const refused = { code: 'invalid_options', message: expect.stringContaining(message) as string }
    await expect(chat.send('Hi.', options)).rejects.toMatchObject(refused)
    await expect(chat.steer('Hi.', options)).rejects.toMatchObject(refused)
    expect(chat.snapshot.queue).toEqual([])
  })

  test.each<[object, string]>([
    [{ apu: '/api/chat' }, '`runTransport`: `apu`'],
    [{ header: {} }, 'Did you mean `headers`?'],
    [{ stopURL: () => '/stop' }, 'Did you mean `stopUrl`?'],
  ])('by runTransport: %j', (options, message) => {
    expect(() => runTransport(options)).toThrow(message)
  })
})
