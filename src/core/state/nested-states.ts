import type { StoredChild } from './child-state.js'
import type { Phase, RunState } from './state.js'

/** The child runs that a state contains. */
export function childrenIn({ phase, background }: Pick<RunState, 'phase' | 'background'>): readonly StoredChild[] {
  const position = phase.at === 'ended' ? phase.position : phase
  const ofCalls = position?.at === 'batch' ? position.calls.flatMap(({ children }) => children) : []
  return [...ofCalls, ...(background?.runs ?? []).flatMap(({ state }) => state ?? [])]
}

/** A state with other forms of its child runs. Gives the state itself if it has none. */
export function withChildren<State extends Pick<RunState, 'phase' | 'background'>>(
  state: State,
  change: (child: StoredChild) => StoredChild,
): State {
  if (childrenIn(state).length === 0) return state
  const { phase, background } = state
  return {
    ...state,
    phase: withCallChildren(phase, change),
    ...(background !== undefined && {
      background: {
        ...background,
        runs: background.runs.map((run) => ({ ...run, state: run.state === null ? null : change(run.state) })),
      },
    }),
  }
}

function withCallChildren<At extends Phase>(phase: At, change: (child: StoredChild) => StoredChild): At {
  if (phase.at === 'ended')
    return phase.position === undefined ? phase : { ...phase, position: withCallChildren(phase.position, change) }
  if (phase.at !== 'batch') return phase
  return { ...phase, calls: phase.calls.map((call) => ({ ...call, children: call.children.map(change) })) }
}
