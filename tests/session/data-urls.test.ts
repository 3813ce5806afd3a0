import { describe, expect, test } from 'vitest'
import { ToolResult } from 'thinharness'
import type { ContentPart } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { harnessOf, tool } from '../harness/support.js'
import { sessionsOf } from './support.js'

const PAGE = Buffer.from('<p>Üben</p>').toString('base64')
const PDF = Buffer.from('%PDF-1.7\n').toString('base64')

describe('the data of a file', () => {
  test('may be a data: URL, in a message and in a prompt: the model reads the file', async () => {
    const model = new ScriptedModel().always({ text: 'Yes.' })
    const harness = harnessOf({ model })
    const chat = await sessionsOf({ harness }).open()
    const content: readonly ContentPart[] = [
      { type: 'file', data: `data:text/html;base64,${PAGE}`, mediaType: 'text/html', name: 'a.html' },
      { type: 'file', data: `data:application/pdf;base64,${PDF}`, mediaType: 'application/pdf' },
    ]
    await (
      await chat.send(content)
    ).done
    const read = JSON.stringify(model.requests.at(-1)?.entries ?? chat.snapshot.runs[0]?.prompt)
    expect(JSON.stringify(chat.snapshot.runs[0]?.prompt)).toContain('<p>Üben</p>')
    expect(read).not.toContain('data:')
    const { transcript } = await harness.run([...content])
    expect(transcript[0]).toMatchObject({ content: [{ data: PAGE }, { data: PDF }] })
  })

  test.each(['data:text/plain,hello', 'not base64!', 'data:image/png,%89PNG', '{}'])(
    'is refused where it is given if it is no base64: %s',
    async (data) => {
      const part: ContentPart = { type: 'file', data, mediaType: 'application/pdf' }
      const expected = expect.stringContaining('to be base64') as string
      const model = new ScriptedModel().calls('scan').says('Done.')
      const scan = tool('scan', () => new ToolResult({ content: 'A scan.', parts: [part] }))
      const harness = harnessOf({ model, tools: [scan] })
      const chat = await sessionsOf({ harness: harnessOf({ model }) }).open()
      await expect(chat.send([part])).rejects.toMatchObject({ code: 'invalid_options', message: expected })
      expect(() => harness.stream([part])).toThrow('to be base64')
      await harness.run('Scan it.')
      expect(model.heard.at(-1)).toMatchObject({ kind: 'tool_outputs', outputs: [{ ok: false }] })
    },
  )
})
