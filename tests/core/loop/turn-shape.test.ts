import fc from 'fast-check'
import { expect, test } from 'vitest'
import { HarnessError } from 'thinharness'
import type { Model } from 'thinharness'
import { UNREPORTED_USAGE } from '#contracts/entry.js'
import { harnessOf, tool } from '../../harness/support.js'
import { rounds } from '../../support/length.js'

const CALL = { type: 'tool_call', callId: 'call_1', name: 'look', arguments: '{}' }
const TURN = {
  entry: {
    role: 'assistant',
    parts: [{ type: 'text', text: 'Hi.' }, { type: 'reasoning', text: '' }, CALL],
    provider: 'p',
    model: 'm',
    finishReason: 'tool_calls',
    usage: UNREPORTED_USAGE,
    native: { provider: 'p', data: {} },
  },
  nativeFinishReason: null,
  responseId: null,
  responseModel: null,
  refusal: 'No.',
}

/** Values of the wrong type for a field. */
const WRONG: readonly unknown[] = [undefined, null, 5, true, 'wrong', {}, [], () => 'wrong', Symbol('wrong')]

/** The fields of a turn, and the wrong values that they can have by chance. */
const FIELDS: readonly (readonly [path: readonly (string | number)[], right: (value: unknown) => boolean])[] = [
  [['entry'], () => false],
  [['entry', 'role'], () => false],
  // A list without parts is an empty reply.
  [['entry', 'parts'], (value) => Array.isArray(value)],
  [['entry', 'parts', 0], () => false],
  [['entry', 'parts', 0, 'type'], () => false],
  [['entry', 'parts', 0, 'text'], isString],
  [['entry', 'parts', 1, 'text'], isString],
  [['entry', 'parts', 2, 'callId'], isString],
  [['entry', 'parts', 2, 'name'], isString],
  [['entry', 'parts', 2, 'arguments'], isString],
  [['entry', 'provider'], isString],
  [['entry', 'model'], isString],
  [['entry', 'finishReason'], () => false],
  [['entry', 'native'], (value) => value === undefined],
  // Missing counts are not reported.
  [['entry', 'usage'], (value) => typeof value === 'object' && value !== null && !Array.isArray(value)],
  [['entry', 'usage', 'inputTokens'], isCount],
  [['entry', 'usage', 'reasoningTokens'], isCount],
  [['nativeFinishReason'], isWord],
  [['responseId'], isWord],
  [['responseModel'], isWord],
  [['refusal'], isWord],
]

function isString(value: unknown): boolean {
  return typeof value === 'string'
}

function isWord(value: unknown): boolean {
  return value === undefined || value === null || isString(value)
}

function isCount(value: unknown): boolean {
  return value === undefined || value === null || value === 5
}

function nameOf(path: readonly (string | number)[]): string {
  return path.reduce<string>(
    (name, key) => (typeof key === 'number' ? `${name}[${key}]` : name === '' ? key : `${name}.${key}`),
    '',
  )
}

/** A copy with another value at one place. */
function replaced(value: unknown, [key, ...rest]: readonly (string | number)[], by: unknown): unknown {
  if (key === undefined) return by
  const copy = (Array.isArray(value) ? [...(value as unknown[])] : { ...(value as object) }) as Record<
    string | number,
    unknown
  >
  copy[key] = replaced(copy[key], rest, by)
  return copy
}

async function thrownFor(turn: unknown): Promise<unknown> {
  let asked = 0
  const end = { ...TURN, entry: { ...TURN.entry, parts: [{ type: 'text', text: 'Done.' }], finishReason: 'stop' } }
  const model: Model = {
    provider: 'p',
    id: 'm',
    capabilities: {},
    openSession: () => ({ turn: async () => (asked++ === 0 ? turn : end) as never }),
  }
  return harnessOf({ model, tools: [tool('look')] })
    .run('Go.')
    .then(() => null)
    .catch((error: unknown) => error)
}

test('a turn of the right shape is accepted', async () => {
  expect(await thrownFor(TURN)).toBeNull()
})

test.each(FIELDS.map(([path, right]) => [nameOf(path), path, right] as const))(
  'a turn of a custom model with a wrong `%s` ends in an error that names it',
  async (name, path, right) => {
    for (const value of WRONG.filter((each) => !right(each))) {
      const error = await thrownFor(replaced(TURN, path, value))
      expect(error, String(value)).toBeInstanceOf(HarnessError)
      expect(error).toMatchObject({ code: 'provider_error' })
      expect((error as HarnessError).message).toContain(`\`${name}`)
    }
  },
)

test('whatever a custom model returns, a run ends in a result or a `HarnessError`', async () => {
  const path = fc.constantFrom(...FIELDS.map(([each]) => each), [])
  await fc.assert(
    fc.asyncProperty(path, fc.anything({ withNullPrototype: true }), async (where, value) => {
      const error = await thrownFor(replaced(TURN, where, value))
      expect(error === null || error instanceof HarnessError, String(where)).toBe(true)
    }),
    rounds(150),
  )
})
