import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { LiveLines } from '#command/terminal/live-lines.js'
import { cut, Terminal, visible, widthOf } from '#command/terminal/terminal.js'
import { rounds } from '../support/length.js'
import { onTerminal, project, shell, slowCall } from './shell.js'

/** A terminal that keeps what is drawn on it. */
function fakeTerminal(size: { columns: number; rows: number }): {
  readonly terminal: Terminal
  readonly drawn: () => string
} {
  let text = ''
  const stderr = Object.assign(size, { isTTY: true, write: (piece: string) => void (text += piece) })
  const stdin = Object.assign(new PassThrough(), { isTTY: true }) as unknown as NodeJS.ReadStream
  return { terminal: new Terminal({ stdout: stderr, stderr, stdin, env: {} }), drawn: () => text }
}

test('what is written has a colour of ours, and the codes of strangers are shown', () => {
  const { terminal, drawn } = fakeTerminal({ columns: 40, rows: 10 })
  terminal.out('completed \u001B[31mred\n', ['completed', 'green'])
  expect(drawn()).toBe('\u001B[32mcompleted\u001B[0m \u241B[31mred\n')
})

describe('lines that are written again', () => {
  beforeEach(() => vi.useFakeTimers())
  afterEach(() => vi.useRealTimers())

  test('CL-06 are written at most 20 times a second, and never more of them than the terminal is high', () => {
    const { terminal, drawn } = fakeTerminal({ columns: 40, rows: 10 })
    const lines = new LiveLines(terminal)
    for (let ms = 0; ms < 1000; ms += 10) {
      lines.show(Array.from({ length: 50 }, (_, index) => `line ${index}`))
      vi.advanceTimersByTime(10)
    }
    const frames = drawn().split('\u001B[J')
    expect(frames.length).toBeLessThanOrEqual(21)
    expect(frames.at(-1)?.trimEnd().split('\n')).toHaveLength(8)
    lines.clear()
  })

  test('CL-06 a line that is done is written once, above the others', () => {
    const { terminal, drawn } = fakeTerminal({ columns: 40, rows: 10 })
    const lines = new LiveLines(terminal)
    lines.show(['in progress'])
    vi.advanceTimersByTime(100)
    lines.done('done')
    lines.clear()
    expect(drawn()).toBe('in progress\n\u001B[1A\r\u001B[Jdone\nin progress\n\u001B[1A\r\u001B[J')
  })

  test('CL-07 a terminal that became narrower has all rows of a line removed', () => {
    const size = { columns: 80, rows: 10 }
    const { terminal, drawn } = fakeTerminal(size)
    const lines = new LiveLines(terminal)
    lines.show(['x'.repeat(70)])
    vi.advanceTimersByTime(100)
    size.columns = 40
    lines.clear()
    expect(drawn().endsWith('\u001B[2A\r\u001B[J')).toBe(true)
  })
})

describe('text', () => {
  test('CL-07 is cut to the columns of the terminal, whatever its characters', () => {
    const words = fc.string({ unit: fc.constantFrom('a', '東', '👩‍👩‍👧', 'é', ' ', '\u001B[31m'), maxLength: 80 })
    fc.assert(
      fc.property(words, fc.integer({ min: 2, max: 60 }), (text, columns) => {
        expect(widthOf(cut(text, columns))).toBeLessThanOrEqual(columns)
      }),
      rounds(300),
    )
  })

  test('CL-07 control characters are shown and not obeyed', () => {
    expect(visible('a\u001B[2Jb\u0007\u009Bc\u202Ed\ne\tf')).toBe('a␛[2Jb␇\\u009bc\\u202ed\ne\tf')
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(visible(text)).not.toMatch(/[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u202A-\u202E\u2066-\u2069]/)
      }),
      rounds(300),
    )
  })
})

describe('a person at the terminal', () => {
  test('CL-08 Enter alone decides nothing, v shows all, y allows once', async () => {
    const { press, ended } = onTerminal(['run', 'pay'], { folder: project() })
    await press('y allow', '\r')
    await press('Type one of', 'v\r')
    await press('"amount": 5', 'y\r')
    const { code, stdout } = await ended
    expect(code).toBe(0)
    expect(stdout).toContain('Answer to: pay')
    expect(stdout).toContain('pay 5')
  })

  test('CL-08 n rejects with a reason, and s leaves the run waiting', async () => {
    const folder = project()
    const refused = onTerminal(['run', 'pay'], { folder })
    await refused.press('y allow', 'n\r')
    await refused.press('Why not?', 'too much\r')
    expect((await refused.ended).stdout).toContain('too much')
    const left = onTerminal(['run', 'pay'], { folder })
    await left.press('y allow', 's\r')
    expect((await left.ended).code).toBe(3)
    expect((await shell(['list'], { folder })).stdout).toContain('paused')
  })

  test('CL-08 e edits the arguments in the editor', async () => {
    const folder = project()
    const editor = join(folder, 'editor.sh')
    writeFileSync(editor, '#!/bin/sh\necho \'{ "amount": 3 }\' > "$1"\n')
    chmodSync(editor, 0o700)
    const { press, ended } = onTerminal(['run', 'pay'], { folder, env: { EDITOR: editor } })
    await press('y allow', 'e\r')
    await ended
    const { stdout } = await shell(['inspect', 'last', '--events'], { folder })
    expect(stdout).toContain('paid 3')
  })

  test('CL-11 a line that is typed while it runs is steering, and is shown as taken', async () => {
    const folder = project()
    const { press, ended } = onTerminal(['run', 'slow'], { folder })
    await slowCall(folder)
    await press('slow', 'and hurry\r')
    await press('queued for the next turn', '')
    writeFileSync(join(folder, 'go'), '')
    const { code, stdout } = await ended
    expect(code).toBe(0)
    expect(stdout).toContain('taken: and hurry')
    expect(stdout).toContain('Answer to: slow and hurry')
  })

  test('CL-09 questions are asked by their schema', async () => {
    const config = `import { defineTool } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
const anything = { type: 'object', properties: {} }
const schemas = [
  { type: 'string' }, { type: 'integer' }, { type: 'boolean' }, { enum: ['red', 'green'] },
  { type: 'array', items: { enum: ['a', 'b', 'c'] } },
]
const ask = defineTool({ name: 'ask', description: 'Asks.', parameters: anything, handler: async (_, context) => {
  const answers = []
  for (const [index, schema] of schemas.entries()) answers.push(await context.ask('Question ' + index, schema, { key: 'q' + index }))
  return answers
} })
const answer = ({ transcript }) => transcript.at(-1).role === 'user' ? { calls: [{ name: 'ask', arguments: {} }] } : 'Thanks.'
export default { model: new ScriptedModel().always(answer), tools: [ask] }`
    const folder = project({ config })
    const { press, ended } = onTerminal(['run', 'ask me'], { folder })
    await press('Question 0', 'Ada\r')
    await press('Question 1', 'x\r')
    await press('whole number', '\u007F7\r')
    await press('Question 2', '\r')
    await press('Question 3', '\u001B[B\r')
    await press('Question 4', ' \u001B[B \r')
    const { code, stdout } = await ended
    expect({ code, isThanked: stdout.includes('Thanks.') }, stdout).toEqual({ code: 0, isThanked: true })
    const log = (await shell(['inspect', 'last', '--events'], { folder })).stdout
    expect(log.includes('"value":["Ada",7,true,"green",["a","b"]]')).toBe(true)
  })
})

test('CL-06 a run on a terminal leaves its finished lines, and nothing that was in progress', async () => {
  const { ended } = onTerminal(['run', 'look'], { folder: project() })
  const { stdout } = await ended
  const last = stdout.slice(stdout.lastIndexOf('\u001B[J'))
  expect(last).not.toContain('…')
  expect(stdout).toMatch(/look 1/)
})
