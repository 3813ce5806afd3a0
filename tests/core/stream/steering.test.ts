import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { inputPort } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { eventsOf, harnessOf, ofKind, output, tool } from '../../harness/support.js'

describe('steering', () => {
  test('messages are added at turn boundaries, in order, and emitted; those after the end are returned', async () => {
    const input = inputPort()
    const steering = tool('steering', () => {
      void input.send('Be quick.')
      void input.send([{ type: 'text', text: 'And brief.' }])
    })
    using model = new ScriptedModel()
      .calls('steering')
      .replies(() => {
        void input.send('One more thing.')
        return 'Done.'
      })
      .says('Done again.')
    const stream = harnessOf({ model, tools: [steering] }).stream('Go.', { input })
    const events = await eventsOf(stream)
    expect(model.heard).toEqual([
      { kind: 'start', prompt: 'Go.' },
      {
        kind: 'tool_outputs',
        outputs: [output('call_1', 'The tool ran and returned nothing.')],
        prompt: 'Be quick.\n\nAnd brief.',
      },
      { kind: 'message', prompt: 'One more thing.' },
    ])
    expect(
      ofKind(events, 'model_request_started').map(({ requestKind, entries }) => [requestKind, entries.length]),
    ).toEqual([
      ['start', 0],
      ['tool_outputs', 2],
      ['steering', 1],
    ])
    expect((await stream.result).text).toBe('Done again.')
    void input.send('Too late.')
    expect(input.close()).toEqual(['Too late.'])
    expect(() => input.send('Never.')).toThrow('This input port is closed: the run no longer listens.')
  })

  test('a message precedes an answer that was given by final_result, which is accepted in the transcript', async () => {
    const input = inputPort()
    using model = new ScriptedModel()
      .replies(() => {
        void input.send('In capitals.')
        return { calls: [{ name: 'final_result', arguments: { answer: 'yes' } }] }
      })
      .calls('final_result', { answer: 'YES' })
    const result = await harnessOf({ model, outputType: z.object({ answer: z.string() }) }).run('Go.', { input })
    expect(result.output).toEqual({ answer: 'YES' })
    expect(model.heard[1]).toEqual({
      kind: 'tool_outputs',
      outputs: [output('call_1', 'The final answer was accepted.')],
      prompt: 'In capitals.',
    })
    expect(result.transcript.map(({ id, role }) => [id, role])).toEqual([
      ['e1', 'user'],
      ['e2', 'assistant'],
      ['e3', 'tool'],
      ['e4', 'user'],
      ['e5', 'assistant'],
      ['e6', 'tool'],
    ])
  })

  test('a message that the request limit leaves no room for is returned, and the answer is final', async () => {
    const input = inputPort()
    using model = new ScriptedModel().replies(() => {
      void input.send('More.')
      return 'Done.'
    })
    const result = await harnessOf({ model, limits: { modelRequests: 1 } }).run('Go.', { input })
    expect(result.text).toBe('Done.')
    expect(input.close()).toEqual(['More.'])
  })
})
