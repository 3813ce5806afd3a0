import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { RunUsage } from 'thinharness'
import type { RunRules } from '#core/state/run-rules.js'
import type { StallRules } from '#contracts/limits.js'
import { NO_USAGE } from '#contracts/run-usage.js'
import { limitNotices } from '#core/loop/limit-notices.js'
import { areLimitsFar, closingBreach, nearLimits, requestBreach, stallBreach } from '#core/state/limit-checks.js'
import type { Breach, Standing } from '#core/state/limit-checks.js'
import { RULES } from './support.js'
import { rounds } from '../../support/length.js'

interface Given {
  readonly limits?: Partial<RunRules['limits']>
  readonly usage?: Partial<RunUsage>
  readonly stall?: Partial<StallRules>
}

const STALL: StallRules = { noticeAfter: 3, answerAfter: 5, stopAfter: 8, ignore: [] }

function standing({ limits, usage, stall }: Given, beside: Partial<Standing> & { onLimit?: 'answer' } = {}): Standing {
  const { onLimit, ...rest } = beside
  const rules = {
    ...RULES,
    limits: { ...RULES.limits, ...limits },
    ...(stall && { stall: { ...STALL, ...stall } }),
    ...(onLimit && { onLimit }),
  }
  const fresh = { elapsedMs: 0, lastInputTokens: 0, staleTurns: 0, refusedCalls: null }
  return { rules, usage: { ...NO_USAGE, ...usage }, ...fresh, ...rest }
}

describe('budgets that are nearly used up', () => {
  test.each<[string, Standing, readonly [string, number][]]>([
    ['nothing is limited', standing({ usage: { inputTokens: 1e9, costUsd: 1e9 } }), []],
    ['nothing is used', standing({ limits: { timeMs: 5, costUsd: 0.1, inputTokens: 1 } }), []],
    ['a tenth is left of the time', standing({ limits: { timeMs: 1000 } }, { elapsedMs: 900 }), [['time_ms', 100]]],
    ['more than that is left', standing({ limits: { timeMs: 1000 } }, { elapsedMs: 899 }), []],
    [
      'a tenth is left of the money',
      standing({ limits: { costUsd: 0.5 }, usage: { costUsd: 0.46 } }),
      [['cost_usd', 0.04]],
    ],
    [
      'the next request would need what is left',
      standing({ limits: { inputTokens: 1000 }, usage: { inputTokens: 500 } }, { lastInputTokens: 500 }),
      [['input_tokens', 500]],
    ],
    [
      'several are',
      standing({ limits: { inputTokens: 100, outputTokens: 100 }, usage: { inputTokens: 99, outputTokens: 120 } }),
      [
        ['input_tokens', 1],
        ['output_tokens', 0],
      ],
    ],
  ])('%s', (_name, given, expected) => {
    expect(nearLimits(given).map(({ kind, remaining }) => [kind, remaining])).toEqual(expected)
  })
})

test('if all limits are far, nothing forbids a request and there is nothing to say about limits', () => {
  const budget = fc.option(fc.nat(30))
  const limits = fc.record({
    ...{ modelRequests: budget, toolCalls: budget, inputTokens: budget, outputTokens: budget },
    ...{ timeMs: budget, costUsd: fc.option(fc.nat(30), { freq: 1 }) },
  })
  const count = fc.nat(30)
  const used = fc.record({ modelRequests: count, toolCalls: count, inputTokens: count, outputTokens: count })
  const more = fc.record({ elapsedMs: count, lastInputTokens: fc.nat(5), refusedCalls: fc.option(count, { freq: 1 }) })
  let far = 0
  fc.assert(
    fc.property(limits, used, more, fc.boolean(), (limits, usage, rest, answers) => {
      const given = standing({ limits, usage }, { ...rest, ...(answers && { onLimit: 'answer' as const }) })
      if (!areLimitsFar(given)) return
      far += 1
      const { rules } = given
      expect([requestBreach(rules, given.usage), stallBreach(given), closingBreach(given)]).toEqual(
        Array(3).fill(undefined),
      )
      expect(limitNotices(given, undefined, [])).toEqual([])
    }),
    rounds(3000),
  )
  expect(far).toBeGreaterThan(50)
})

describe('the reason for a last request without tools', () => {
  const near = { limits: { timeMs: 1000 } }
  test.each<[string, Standing, Breach | undefined]>([
    ['never, where limits end the run', standing(near, { elapsedMs: 990 }), undefined],
    [
      'a budget is nearly used up',
      standing(near, { elapsedMs: 990, onLimit: 'answer' }),
      { kind: 'time_ms', limit: 1000, count: 990 },
    ],
    ['there is room', standing(near, { elapsedMs: 10, onLimit: 'answer' }), undefined],
    [
      'one request is left',
      standing({ limits: { modelRequests: 3 }, usage: { modelRequests: 2 } }, { onLimit: 'answer' }),
      { kind: 'model_requests', limit: 3, count: 2 },
    ],
    [
      'no calls are left',
      standing({ limits: { toolCalls: 2 }, usage: { toolCalls: 2 } }, { onLimit: 'answer' }),
      { kind: 'tool_calls', limit: 2, count: 2 },
    ],
    [
      'a batch was refused',
      standing({ limits: { toolCalls: 2 }, usage: { toolCalls: 1 } }, { onLimit: 'answer', refusedCalls: 4 }),
      { kind: 'tool_calls', limit: 2, count: 5 },
    ],
    ['turns brought nothing, before that', standing({ stall: {} }, { staleTurns: 4 }), undefined],
    ['turns brought nothing', standing({ stall: {} }, { staleTurns: 5 }), { kind: 'stall', limit: 5, count: 5 }],
    ['that step is left out', standing({ stall: { answerAfter: null } }, { staleTurns: 50 }), undefined],
  ])('%s', (_name, given, expected) => {
    expect(closingBreach(given)).toEqual(expected)
  })
})

describe('notices for the model', () => {
  const time = standing({ limits: { timeMs: 60_000 } }, { elapsedMs: 55_000 })
  test.each<[string, Standing, Breach | undefined, string[], string[]]>([
    ['of time', time, undefined, [], ['About 5 s of 60 s remain for this run: come to an answer.']],
    ['nothing twice', time, undefined, ['limit_warning:time_ms:near'], []],
    [
      'of the end of it',
      time,
      { kind: 'time_ms', limit: 60_000, count: 55_000 },
      ['limit_warning:time_ms:near'],
      ['This run is at the end of its time. Answer now with what you have, without tools.'],
    ],
    [
      'to answer by a call, where an answer is one',
      { ...time, rules: { ...time.rules, answersByTool: true } },
      undefined,
      [],
      ['About 5 s of 60 s remain for this run: come to an answer, with `final_result`.'],
    ],
    ['nothing of a stall that has not lasted', standing({ stall: {} }, { staleTurns: 2 }), undefined, [], []],
    [
      'nothing of a stall, where that is left out',
      standing({ stall: { noticeAfter: null } }, { staleTurns: 4 }),
      undefined,
      [],
      [],
    ],
    ['of a stall once', standing({ stall: {} }, { staleTurns: 4 }), undefined, ['limit_warning:stall:3'], []],
  ])('%s', (_name, given, closing, told, expected) => {
    expect(limitNotices(given, closing, told).map(({ content }) => content)).toEqual(expected)
  })
})
