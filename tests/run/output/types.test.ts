import { describe, expectTypeOf, test } from 'vitest'
import { z } from 'zod'
import { Harness, ModelRetry } from 'thinharness'
import type { HarnessResult, JsonValue, RunEvent, Schema, StopReason, ToolContext } from 'thinharness'
import type { InferOutput } from '#core/tools/output-type.js'
import { defineSubagent, parallelLlm } from 'thinharness/tools'
import type { SubagentSpec } from 'thinharness/tools'

const person = z.object({ name: z.string(), age: z.number().optional() })
const company = z.object({ company: z.string() })

interface Tree {
  readonly label: string
  readonly children: readonly Tree[]
}
const tree: Schema<Tree> = {
  type: 'object',
  properties: { label: { type: 'string' }, children: { type: 'array', items: { $ref: '#' } } },
  required: ['label', 'children'],
}

const AGENT = { name: 'a', description: 'Does it.', tools: [] }

function named(name: string): void {
  if (name === '') throw new ModelRetry('Name it.')
}

/** Never called: what it would give is looked at. */
function outputOf<Output>(harness: Harness<Output>): () => Promise<Output> {
  return async () => (await harness.run('Go.')).output
}

/** Nothing is run: what is inferred is what is tested. */
describe('the type of an answer', () => {
  test('is text by default', () => {
    const harness = new Harness()
    expectTypeOf(outputOf(harness)).returns.resolves.toEqualTypeOf<string>()
    expectTypeOf<ReturnType<typeof harness.run>>().resolves.toEqualTypeOf<HarnessResult>()
  })

  test('is the type that a schema parses to: objects, unions, lists, transforms', () => {
    const one = new Harness({ outputType: person })
    expectTypeOf(outputOf(one)).returns.resolves.toEqualTypeOf<{ name: string; age?: number | undefined }>()
    const union = new Harness({ outputType: z.union([person, company]) })
    expectTypeOf(outputOf(union)).returns.resolves.toEqualTypeOf<z.infer<typeof person> | { company: string }>()
    const list = new Harness({ outputType: z.array(z.enum(['a', 'b'])) })
    expectTypeOf(outputOf(list)).returns.resolves.toEqualTypeOf<('a' | 'b')[]>()
    const big = new Harness({ outputType: z.object({ n: z.string().transform(BigInt) }) })
    expectTypeOf(outputOf(big)).returns.resolves.toEqualTypeOf<{ n: bigint }>()
    const maybe = new Harness({ outputType: company.nullable() })
    expectTypeOf(outputOf(maybe)).returns.resolves.toEqualTypeOf<{ company: string } | null>()
  })

  test('is any of several types', () => {
    const harness = new Harness({ outputType: [person, company, z.string()] })
    expectTypeOf(outputOf(harness)).returns.resolves.toEqualTypeOf<
      z.infer<typeof person> | { company: string } | string
    >()
    expectTypeOf<InferOutput<readonly [typeof company]>>().toEqualTypeOf<{ company: string }>()
  })

  test('is JSON for a JSON Schema document, and the type that its author declares', () => {
    const json = new Harness({ outputType: { type: 'object', properties: { a: { type: 'string' } } } })
    expectTypeOf(outputOf(json)).returns.resolves.toEqualTypeOf<JsonValue>()
    const said = new Harness<Tree>({ outputType: tree })
    expectTypeOf(outputOf(said)).returns.resolves.toEqualTypeOf<Tree>()
  })

  test('is the type that a validator receives', () => {
    const harness = new Harness({
      outputType: company,
      outputValidator: (answer, context) => {
        expectTypeOf(answer).toEqualTypeOf<{ company: string }>()
        expectTypeOf(context.root).toEqualTypeOf<string>()
        if (answer.company === '') throw new ModelRetry('Name the company.')
      },
    })
    expectTypeOf(outputOf(harness)).returns.resolves.toEqualTypeOf<{ company: string }>()
    const several = new Harness({
      outputType: [company, z.number()],
      outputValidator: (answer) => {
        expectTypeOf(answer).toEqualTypeOf<{ company: string } | number>()
      },
    })
    expectTypeOf(outputOf(several)).returns.resolves.toEqualTypeOf<{ company: string } | number>()
    const text = new Harness({
      outputValidator: (answer) => {
        expectTypeOf(answer).toEqualTypeOf<string>()
      },
    })
    expectTypeOf(outputOf(text)).returns.resolves.toEqualTypeOf<string>()
  })

  test('is that of a child run, and the type that its own validator receives', () => {
    const start = (context: ToolContext) => ({
      text: context.spawn({ prompt: 'Go.' }),
      one: context.spawn({ prompt: 'Go.', outputType: company, outputValidator: (answer) => named(answer.company) }),
      several: context.spawn({
        prompt: 'Go.',
        outputType: [company, z.number()],
        outputValidator: (answer) => {
          expectTypeOf(answer).toEqualTypeOf<{ company: string } | number>()
        },
      }),
      said: context.spawn<Tree>({ prompt: 'Go.', outputType: tree }),
    })
    expectTypeOf(start).parameter(0).toEqualTypeOf<ToolContext>()
    type Output<Key extends keyof ReturnType<typeof start>> = Awaited<ReturnType<typeof start>[Key]['result']>['output']
    expectTypeOf<Output<'text'>>().toEqualTypeOf<string>()
    expectTypeOf<Output<'one'>>().toEqualTypeOf<{ company: string }>()
    expectTypeOf<Output<'several'>>().toEqualTypeOf<{ company: string } | number>()
    expectTypeOf<Output<'said'>>().toEqualTypeOf<Tree>()
  })

  test('is the type that the validators of agents and of batches receive', () => {
    const make = (): unknown => {
      const agents = [
        defineSubagent({ ...AGENT, outputType: company, outputValidator: (answer) => named(answer.company) }),
        defineSubagent({ ...AGENT, outputValidator: (answer) => named(answer.trim()) }),
      ]
      expectTypeOf(agents).items.toEqualTypeOf<SubagentSpec>()
      const batch = parallelLlm({
        outputType: [company, z.number()],
        outputValidator: (answer) => {
          expectTypeOf(answer).toEqualTypeOf<{ company: string } | number>()
        },
      })
      // Said by hand, it needs no help.
      const stated = {
        ...AGENT,
        outputType: company,
        outputValidator: (answer: { company: string }) => named(answer.company),
      }
      return new Harness({ subagents: [...agents, stated], tools: [batch] })
    }
    expectTypeOf(make).toBeFunction()
  })

  test('is not inferred from values that are not types', () => {
    // @ts-expect-error a list of fields is no schema
    const wrong = (): unknown => new Harness({ outputType: [person, 5] })
    // @ts-expect-error the mode is one of five
    const mode = (): unknown => new Harness({ outputType: person, outputMode: 'json' })
    expectTypeOf([wrong, mode]).items.toBeFunction()
  })
})

test('events and stop reasons are discriminated by their tags', () => {
  expectTypeOf<StopReason>().extract<'end_turn'>().toEqualTypeOf<'end_turn'>()
  expectTypeOf<RunEvent & { kind: 'output_delta' }>().toHaveProperty('output')
  const told = (event: RunEvent): JsonValue | string | undefined => {
    if (event.kind === 'output_delta') return event.output
    return event.kind === 'text_delta' ? event.text : undefined
  }
  expectTypeOf(told).parameter(0).toEqualTypeOf<RunEvent>()
})
