import fc from 'fast-check'
import type { JsonObject } from 'thinharness'

/** What a model does in a run, and what people do with it. Plain JSON: the prompt of a run is its plan. */
export interface Plan {
  readonly replies: readonly PlannedReply[]
  /** How the answer is asked for; null: as text. */
  readonly output: 'tool' | 'native' | 'prompted' | null
  /** Wrong answers before the right one. */
  readonly wrongAnswers: number
  readonly end: 'answers' | 'fails' | 'refuses' | 'is cut off' | 'is filtered'
  /** The run is cancelled at its event of this number, ephemeral ones included; null: it is not. */
  readonly cancelAt: number | null
  /** Requests of the model, at most; null: any number. */
  readonly modelRequests: number | null
}

export interface PlannedReply {
  readonly parts: readonly PlannedPart[]
  /** Parts of attempts that fail before the reply. */
  readonly attempts: readonly (readonly PlannedPart[])[]
  /** What a person writes while the reply arrives; null: nothing. */
  readonly steering: string | null
}

export type PlannedPart =
  | { readonly type: 'text' | 'reasoning'; readonly text: string }
  | { readonly type: 'call'; readonly name: string; readonly arguments: JsonObject | string }

/** The answers of people, used in turn. */
export type Decision = 'approve' | 'reject' | 'edit' | 'decline'

export interface PlannedRun {
  readonly plan: Plan
  readonly decisions: readonly Decision[]
  /** All that waits is answered at once; else one item after the other. */
  readonly answersAll: boolean
}

const PLAIN_TOOLS = ['look', 'fail', 'retry', 'steps', 'picture', 'rows', 'blocked', 'nobody'] as const
const ASKING_TOOLS = ['pay', 'pay', 'ask', 'survey'] as const

const words = fc.constantFrom(
  'Well. ',
  'Let me see. ',
  'Grüße, 世界 👋. ',
  'A\nB\n\n',
  '"quoted" \\ <b>',
  ' ',
  'data: x\n\n',
  '\u2028',
)
const text = fc.array(words, { minLength: 1, maxLength: 3 }).map((pieces) => pieces.join(''))

/** Null but for one time in `of`. */
function rarely<T>(arbitrary: fc.Arbitrary<T>, of: number): fc.Arbitrary<T | null> {
  return fc.oneof({ arbitrary: fc.constant(null), weight: of - 1 }, { arbitrary, weight: 1 })
}

const callOf = (names: readonly string[]): fc.Arbitrary<PlannedPart> =>
  fc.record({
    type: fc.constant('call' as const),
    name: fc.constantFrom(...names),
    arguments: fc.oneof(
      { arbitrary: fc.nat(9).map((n): JsonObject => ({ n })), weight: 8 },
      { arbitrary: fc.constantFrom<JsonObject | string>({}, '{"n":', { n: 1, note: 'Grüße' }, "{'n': 2,}"), weight: 2 },
    ),
  })

const said: fc.Arbitrary<PlannedPart> = fc.record({
  type: fc.constantFrom('text' as const, 'reasoning' as const),
  text,
})

function partOf(depth: number, names: readonly string[]): fc.Arbitrary<PlannedPart> {
  const calls = callOf(names)
  if (depth === 0) return fc.oneof({ arbitrary: said, weight: 2 }, { arbitrary: calls, weight: 3 })
  const child = fc
    .record({ plans: fc.array(planOf(depth - 1, true), { minLength: 1, maxLength: 2 }) })
    .chain(({ plans }) =>
      fc
        .constantFrom('delegate', 'leave')
        .map((name): PlannedPart => ({ type: 'call', name, arguments: { plans: plans as never } })),
    )
  return fc.oneof({ arbitrary: said, weight: 4 }, { arbitrary: calls, weight: 6 }, { arbitrary: child, weight: 1 })
}

function planOf(depth: number, isChild = false): fc.Arbitrary<Plan> {
  const names = [...PLAIN_TOOLS, ...ASKING_TOOLS]
  const reply: fc.Arbitrary<PlannedReply> = fc.record({
    parts: fc.array(partOf(depth, names), { minLength: 1, maxLength: 4 }),
    attempts: fc.oneof(
      { arbitrary: fc.constant([]), weight: 5 },
      {
        arbitrary: fc.array(fc.array(partOf(0, names), { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 2 }),
        weight: 1,
      },
    ),
    steering: isChild ? fc.constant(null) : rarely(text, 8),
  })
  return fc.record({
    replies: fc.array(reply, { maxLength: isChild ? 2 : 4 }),
    output: isChild
      ? fc.constant(null)
      : rarely(fc.constantFrom('tool' as const, 'native' as const, 'prompted' as const), 4),
    wrongAnswers: fc.oneof({ arbitrary: fc.constant(0), weight: 3 }, { arbitrary: fc.nat(4), weight: 1 }),
    end: fc.oneof(
      { arbitrary: fc.constant('answers' as const), weight: 6 },
      {
        arbitrary: fc.constantFrom('fails' as const, 'refuses' as const, 'is cut off' as const, 'is filtered' as const),
        weight: 1,
      },
    ),
    cancelAt: isChild ? fc.constant(null) : rarely(fc.nat(60), 8),
    modelRequests: isChild ? fc.constant(null) : rarely(fc.integer({ min: 1, max: 3 }), 10),
  })
}

/** Runs of all kinds: texts, reasoning, calls that fail, ask or start child runs, withdrawn attempts, steering, cancels, failures. */
export function plannedRuns(): fc.Arbitrary<PlannedRun> {
  return fc.record({
    plan: planOf(2),
    decisions: fc.array(fc.constantFrom<Decision>('approve', 'approve', 'reject', 'edit', 'decline'), {
      minLength: 1,
      maxLength: 4,
    }),
    answersAll: fc.boolean(),
  })
}
