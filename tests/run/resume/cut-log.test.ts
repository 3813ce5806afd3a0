import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { fileLog } from 'thinharness'
import type { HarnessResult, LogStore, ToolSpec } from 'thinharness'
import { isObject, parseJson } from '#util/json.js'
import { playing } from '../children/children-support.js'
import { failureOf, harnessOf, tool } from '../../harness/support.js'
import { temporaryFolder } from '../../support/folder.js'
import { oneIn, timeLimit } from '../../support/length.js'

const PLAY = { go: [['pay', 'look'], ['pay'], 'All done.'] }
const ENDED = 'tool_call_completed'
/** Between the ends of the records, one offset in so many is tried. */
const EVERY = oneIn(29)

let folder: string
beforeEach(() => void (folder = temporaryFolder()))

test(
  '161 a run whose file was cut at any byte reaches the same end, or is reported as not stored',
  async () => {
    const reference = await play(fileLog(folder), [])
    const path = join(folder, 'run_r.jsonl')
    const whole = await readFile(path)
    const firstEnd = whole.indexOf(10)
    for (const offset of offsetsIn(whole)) {
      await writeFile(path, whole.subarray(0, offset))
      const paid: string[] = []
      const recovering = recover(fileLog(folder, { fsync: 'never' }), paid)
      if (offset < firstEnd) {
        expect(await failureOf(recovering)).toMatchObject({ code: 'invalid_log' })
        continue
      }
      const { text, usage, toolCallRecords } = await recovering
      expect([offset, text, usage.toolCalls]).toEqual([offset, reference.text, reference.usage.toolCalls])
      const before = completedPayments(whole.subarray(0, offset).toString())
      // Paid before the cut, paid now, or told to be unknown: each of both payments is one of these.
      const unknown = toolCallRecords.filter(({ output }) => output.includes('"UnknownOutcome"')).length
      expect([offset, before + paid.length + unknown]).toEqual([offset, 2])
    }
  },
  timeLimit(120_000),
)

function* offsetsIn(whole: Buffer): Generator<number> {
  for (let offset = 0; offset <= whole.length; offset++) {
    const isAtAnEnd = [offset - 1, offset, offset - 2].some((each) => whole[each] === 10)
    if (isAtAnEnd || offset % EVERY === 0) yield offset
  }
}

/** The payments whose end was kept whole. */
function completedPayments(text: string): number {
  return text.split('\n').filter((line) => {
    const parsed = parseJson(line)
    return parsed.ok && isObject(parsed.value) && parsed.value['kind'] === ENDED && parsed.value['toolName'] === 'pay'
  }).length
}

function play(log: LogStore, paid: string[]): Promise<HarnessResult> {
  return harnessOf({ model: playing(PLAY), tools: toolsOf(paid), log }).run('go', { runId: 'run_r' })
}

function recover(log: LogStore, paid: string[]): Promise<HarnessResult> {
  return harnessOf({ model: playing(PLAY), tools: toolsOf(paid), log }).recover('run_r')
}

function toolsOf(paid: string[]): ToolSpec[] {
  return [
    tool('pay', (_, { idempotencyKey }) => {
      paid.push(idempotencyKey)
      return 'paid'
    }),
    tool('look', () => 'seen', { annotations: { readOnly: true } }),
  ]
}
