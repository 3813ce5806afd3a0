import { checkArguments } from '../../tools/boundary/arguments.js'
import { invoke } from '../../tools/boundary/invoke.js'
import type { ChildRun, SpawnOptions } from '../../tools/spec.js'
import { settle } from '../../util/abort.js'
import type { BackgroundRun } from '../machine/other-runs.js'
import { CallChildren } from './children.js'
import type { RunContext } from '../core/context.js'
import type { Frozen } from '../core/frozen.js'
import type { LeftChild } from './left-child.js'
import { toolContext, toolSurroundings } from '../core/tool-context.js'

/**
 * Enters the handler of a call that has ended once more, up to where it has spawned `runs`, which it left in the
 * background before a crash or a pause: what they are made of is in its code alone. Those that it does not spawn any more
 * are missing from what this gives.
 */
export async function enterAgain(
  context: RunContext,
  frozen: Frozen,
  runs: readonly [BackgroundRun, ...BackgroundRun[]],
): Promise<readonly LeftChild[]> {
  const { callId, toolName: name, arguments: text, askedBefore = {} } = runs[0]
  const spec = frozen.tools.get(name)
  const checked = spec === undefined ? null : await checkArguments(spec, text)
  if (spec === undefined || checked?.ok !== true) return []
  const known = {
    callId,
    name,
    children: runs.flatMap(({ state }) => state ?? []),
    answers: runs.flatMap((run) => run.answers),
  }
  const children = new CallChildren(context, frozen, { call: known, isAgain: true })
  const found = (): readonly LeftChild[] => children.left.filter(({ key }) => runs.some((run) => run.key === key))
  const over = new AbortController()
  const surroundings = toolSurroundings(context, frozen)
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

/** Thrown to a handler that has done what it was entered for. */
class EnteredAgain extends Error {
  override readonly name = 'EnteredAgain'

  constructor() {
    super('The call has ended before, and its runs are found again: a handler must not catch this.')
  }
}
