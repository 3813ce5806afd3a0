import { describe, expect, test } from 'vitest'
import { policy } from 'thinharness/policy'
import { ScriptedModel } from 'thinharness/testing'
import { harnessOf, tool } from '../harness/support.js'
import { codeOf, gate, said, sessionsOf } from './support.js'

describe('options', () => {
  test('invalid ones are refused by name; settings can have a JSON Schema', async () => {
    const harness = harnessOf({ model: new ScriptedModel() })
    const message = (options: object): string => {
      try {
        sessionsOf(options as never)
      } catch (error) {
        return error instanceof Error ? error.message : ''
      }
      return 'none'
    }
    expect(message({ harnes: harness })).toContain('`harness`')
    expect(message({})).toContain('either `modes` or `harness`')
    expect(message({ modes: { plan: {} } })).toContain('a `Harness`')
    expect(message({ modes: { plan: harness }, defaultMode: 'toString' })).toContain('no mode `toString`')
    const ruled = harnessOf({ model: new ScriptedModel(), use: [policy([])] })
    expect(message({ harness: ruled, policy: policy([]) })).toContain('`policy`')
    expect(message({ harness: ruled, use: [policy([])] })).toContain('`policy`')
    expect(message({ harness: ruled, policy: policy([], { name: 'rules of the sessions' }) })).toBe('none')
    const settings = { type: 'object', properties: { size: { type: 'number' } }, additionalProperties: false } as const
    const chat = await sessionsOf({ harness, settings }).open()
    await chat.set({ size: 3 })
    expect(await codeOf(chat.set({ size: 'large' }))).toBe('invalid_settings')
    expect(chat.snapshot.thread.settings).toEqual({ size: 3 })
  })
})

describe('refused messages', () => {
  test('SB-60 files of a kind that the model is known not to take store nothing, and cancel nothing', async () => {
    const image = { type: 'image', data: 'AAAA', mediaType: 'image/png' } as const
    const audio = { type: 'audio', data: 'AAAA', mediaType: 'audio/wav' } as const
    const seeing = new ScriptedModel({ capabilities: { inputs: ['image'] } }).says('Seen.')
    const blind = new ScriptedModel({ capabilities: { inputs: [] } }).calls('wait').says('Waited.')
    const [started, waited] = [gate(), gate()]
    const wait = tool('wait', async () => {
      started.open()
      await waited.opened
      return 'Done.'
    })
    const modes = {
      seeing: harnessOf({ model: seeing }),
      blind: harnessOf({ model: blind, tools: [wait] }),
      unknown: harnessOf({ model: new ScriptedModel().says('Perhaps.') }),
    }
    const chat = await sessionsOf({ modes, defaultMode: 'seeing' }).open()
    const refusals = [
      chat.send([audio]),
      chat.send([image], { mode: 'blind' }),
      chat.steer([audio], { interrupt: true }),
    ]
    expect(await Promise.all(refusals.map(codeOf))).toEqual(refusals.map(() => 'unsupported_media'))
    await expect(chat.send([audio])).rejects.toThrow(
      'The model of mode `seeing` does not take the kind `audio`: it takes image.',
    )
    expect(chat.snapshot.runs).toEqual([])
    expect((await (await chat.send([image])).done).text).toBe('Seen.')
    expect((await (await chat.send([audio], { mode: 'unknown' })).done).text).toBe('Perhaps.')
    await chat.setMode('blind')
    const sent = await chat.send('Wait.')
    await started.opened
    expect(await codeOf(chat.steer([image]))).toBe('unsupported_media')
    expect(await codeOf(chat.steer([image], { interrupt: true }))).toBe('unsupported_media')
    expect(await codeOf(chat.send([image]))).toBe('unsupported_media')
    waited.open()
    expect((await sent.done).text).toBe('Waited.')
    expect(chat.snapshot.runs).toHaveLength(3)
  })

  test('SB-60 empty messages and files beyond the limits store nothing; text files are fenced', async () => {
    const model = new ScriptedModel().says('Read.')
    const sessions = sessionsOf({ harness: harnessOf({ model }), limits: { fileBytes: 100, queuedMessages: 1 } })
    const chat = await sessions.open()
    const data = (text: string): string => Buffer.from(text).toString('base64')
    expect(await codeOf(chat.send('  '))).toBe('empty_message')
    const large = { type: 'file', data: data('x'.repeat(200)), mediaType: 'text/plain', name: 'a.txt' } as const
    expect(await codeOf(chat.send([large]))).toBe('file_too_large')
    const text = { type: 'file', data: data('a ````` b'), mediaType: 'text/markdown', name: 'b.md' } as const
    await (
      await chat.send([{ type: 'text', text: 'Look.' }, text])
    ).done
    expect(said(chat)[0]).toBe('user: Look.The file `b.md` (text/markdown):\n``````\na ````` b\n``````')
  })
})
