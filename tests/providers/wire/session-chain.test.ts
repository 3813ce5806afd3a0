import { describe, expect, test } from 'vitest'
import type { TranscriptEntry } from '#contracts/entry.js'
import { assistant, call, constants, echoFormat, EchoTransport, result, user } from '../echo-format.js'
import { listening, sessionOver } from '../echo-session.js'

describe('a server that stores the conversation', () => {
  test('PR-04 a request holds the new entries and names the previous response', async () => {
    const transport = new EchoTransport(
      'bytes',
      { id: 'r1', text: 'a' },
      { id: 'r2', text: 'b' },
      { id: 'r3', text: 'c' },
    )
    const session = sessionOver(transport, { chain: true })
    const transcript: TranscriptEntry[] = [user('one')]
    await session.turn(transcript, constants(), listening())
    transcript.push(assistant(call('c1'), call('c2')), result('c1'), result('c2'), user('notice'))
    await session.turn(transcript, constants(), listening())
    transcript.push(assistant({ type: 'text', text: 'b' }), user('two'))
    const options = listening()
    await session.turn(transcript, constants(), options)
    expect(transport.sent).toEqual([
      { model: 'm', tools: [], messages: [{ system: 'Be brief.' }, { user: 'one' }] },
      { model: 'm', tools: [], messages: [{ tool: 'c1' }, { tool: 'c2' }, { user: 'notice' }], previous: 'r1' },
      { model: 'm', tools: [], messages: [{ user: 'two' }], previous: 'r2' },
    ])
    expect(options.busts).toEqual([])
  })

  test('PR-04 a failed turn is sent again unchanged', async () => {
    const transport = new EchoTransport(
      'bytes',
      { id: 'r1', text: 'a' },
      { error: { type: 'invalid_x' } },
      { id: 'r2' },
    )
    const session = sessionOver(transport, { chain: true })
    const transcript = [user('one')]
    await session.turn(transcript, constants(), listening())
    transcript.push(assistant({ type: 'text', text: 'a' }) as never, user('two'))
    await expect(session.turn(transcript, constants(), listening())).rejects.toThrow()
    await session.turn(transcript, constants(), listening())
    expect(transport.sent[2]).toEqual({ model: 'm', tools: [], messages: [{ user: 'two' }], previous: 'r1' })
  })

  test.each<[string, (transcript: TranscriptEntry[]) => TranscriptEntry[]]>([
    [
      'another model has answered since',
      (old) => [...old, user('x'), assistant({ type: 'text', text: 'y' }), user('two')],
    ],
    [
      'another model answered in its place',
      ([first]) => [first!, { ...assistant(), model: 'n' } as TranscriptEntry, user('two')],
    ],
    ['an earlier entry changed', ([, ...rest]) => [user('1'), ...rest, user('two')]],
  ])('PR-04 the whole transcript is sent if the response id no longer fits: %s', async (_name, after) => {
    const transport = new EchoTransport('bytes', { id: 'r1', text: 'a' }, { id: 'r2', text: 'b' })
    const session = sessionOver(transport, { chain: true })
    const transcript = [user('one')]
    await session.turn(transcript, constants(), listening())
    const changed = after([...transcript, assistant({ type: 'text', text: 'a' })])
    await session.turn(changed, constants(), listening())
    const messages = [{ system: 'Be brief.' }, ...echoFormat.encode(changed, constants())]
    expect(transport.sent[1]).toEqual({ model: 'm', tools: [], messages })
  })

  test.each([true, false])(
    'another view is encoded again and sent whole, and does not count as a lost cache (chain: %s)',
    async (chain) => {
      const transport = new EchoTransport(
        'bytes',
        { id: 'r1', text: 'a' },
        { id: 'r2', text: 'b' },
        { id: 'r3', text: 'c' },
      )
      const session = sessionOver(transport, { chain })
      const view: TranscriptEntry[] = [user('one'), assistant(call('c1')), result('c1')]
      await session.turn(view, constants(), listening())
      const next: TranscriptEntry[] = [user('summary'), assistant({ type: 'text', text: 'a' }), user('two')]
      const options = listening({ generation: 1 })
      await session.turn(next, constants(), options)
      const messages = [{ system: 'Be brief.' }, ...echoFormat.encode(next, constants())]
      expect(transport.sent[1]).toEqual({ model: 'm', tools: [], messages })
      expect(options.busts).toEqual([])
      next.push(assistant({ type: 'text', text: 'b' }), user('three'))
      await session.turn(next, constants(), listening({ generation: 1 }))
      const added = echoFormat.encode(next.slice(-1), constants())
      expect(transport.sent[2]).toMatchObject(chain ? { previous: 'r2', messages: added } : { messages: { length: 6 } })
    },
  )

  test('PR-04 RS-14 a response without an id cannot be continued by id', async () => {
    const transport = new EchoTransport('bytes', { text: 'a' }, { id: 'r2', text: 'b' }, { id: 'r3' })
    const session = sessionOver(transport, { chain: true })
    const transcript: TranscriptEntry[] = [user('one')]
    await session.turn(transcript, constants(), listening())
    transcript.push(assistant({ type: 'text', text: 'a' }), user('two'))
    await session.turn(transcript, constants(), listening())
    transcript.push(assistant({ type: 'text', text: 'b' }), user('three'))
    await session.turn(transcript, constants(), listening())
    const first = [{ system: 'Be brief.' }, { user: 'one' }, { assistant: ['text'] }, { user: 'two' }]
    expect(transport.sent.slice(1)).toEqual([
      { model: 'm', tools: [], messages: first },
      { model: 'm', tools: [], messages: [{ user: 'three' }], previous: 'r2' },
    ])
  })
})
