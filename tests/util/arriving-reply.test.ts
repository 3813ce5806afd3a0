import { expect, test } from 'vitest'
import { ArrivingReply } from '#util/queue/deltas.js'

test('a reply of very many parts is kept whole, and its pieces are not compared with each other', () => {
  const reply = new ArrivingReply()
  let looked = 0
  for (let seq = 0; seq < 10_000; seq++) {
    const callId = `call_${Math.floor(seq / 2)}`
    reply.push({
      ...{ kind: 'tool_input_delta', runId: 'run_1', seq, text: `${seq} `, partId: '' },
      get callId() {
        looked += 1
        return callId
      },
    })
  }
  const texts = new Map<string, string>()
  for (const { callId, text } of reply.deltas as unknown as readonly {
    readonly callId: string
    readonly text: string
  }[])
    texts.set(callId, (texts.get(callId) ?? '') + text)
  expect(texts.size).toBe(5_000)
  expect(texts.get('call_0')).toBe('0 1 ')
  expect(texts.get('call_4999')).toBe('9998 9999 ')
  expect(looked).toBeLessThan(5_000_000)
})
