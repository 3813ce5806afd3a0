import { checkArguments } from '#core/tools/boundary/check-arguments.js'
import { invoke } from '#core/tools/boundary/invoke.js'
import type { ChildRun, SpawnOptions } from '#core/tools/tool-spec.js'
import { settle } from '#util/abort.js'
import type { BackgroundRun } from '#core/state/background-state.js'
import { CallChildren } from './children.js'
import type { RunContext } from '#core/loop/run-context.js'
import type { RunSetup } from '#core/loop/run-plan.js'
import type { LeftChild } from '#core/loop/child-run.js'
import { toolContext, toolSurroundings } from '#core/loop/tool-context.js'

/**
 * Enters the handler of an ended call again, until it has spawned `runs`, the background runs that it started before a crash
 * or a pause: only its code knows their options. Runs that it no longer spawns are missing from the result.
 */
export async function enterAgain(
  context: RunContext,
  setup: RunSetup,
  runs: readonly BackgroundRun[],
): Promise<readonly LeftChild[]> {
  const [first] = runs
  if (first === undefined) return []
  const { callId, toolName: name, arguments: text, askedBefore = {} } = first
  const spec = setup.tools.get(name)
  const checked = spec === undefined ? null : await checkArguments(spec, text)
  if (spec === undefined || checked?.ok !== true) return []
  const known = {
    callId,
    name,
    children: runs.flatMap(({ state }) => state ?? []),
    answers: runs.flatMap((run) => run.answers),
  }
  const children = new CallChildren(context, setup, { call: known, isAgain: true })
  const found = (): readonly LeftChild[] => children.left.filter(({ key }) => runs.some((run) => run.key === key))
  const over = new AbortController()
  const surroundings = toolSurroundings(context, setup)
  const work = (aborted: AbortSignal): Promise<void> =>
    new Promise((resolve) => {
      const spawn = <Output>(options: SpawnOptions<Output>, own: AbortSignal): ChildRun<Output> => {
        const run = children.spawn(options, own)
        if (found().length < runs.length) return run
        resolve()
        throw new EnteredAgain()
      }
      const signal = AbortSignal.any([aborted, over.signal])
      const answers = () => new Map(Object.entries(askedBefore))
      const life = { signal, hasEnded: () => over.signal.aborted, answers, spawn }
      void invoke(spec, checked.value, toolContext(context, surroundings, { call: { callId, name }, life })).then(() =>
        resolve(),
      )
    })
  await settle(work, { abort: context.abort, timeoutMs: spec.timeoutMs })
  over.abort(new EnteredAgain())
  await children.end()
  for (const child of children.left) if (!found().includes(child)) child.drop()
  return found()
}

/** Thrown to a handler once it has spawned its runs. */
class EnteredAgain extends Error {
  override readonly name = 'EnteredAgain'

  constructor() {
    super('The call has ended before, and its runs have been found: a handler must not catch this.')
  }
}
