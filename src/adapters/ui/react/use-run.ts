import { useMemo, useSyncExternalStore } from 'react'
import { createRunStore } from './run-store.js'
import type { FollowedRunActions, FollowedRunOptions, FollowedRunState, FollowedRunStore } from './run-store.js'
import { useSource } from './use-store.js'

/** A run, what a page can do with it, and its store for the components below. */
export interface FollowedRun extends FollowedRunState, FollowedRunActions {
  readonly store: FollowedRunStore
}

/**
 * One run in a component: its `status`, `text`, `run`, `pending` and `tasks`, and the functions `steer`, `stop`, `approve` and the
 * others. It is followed across its pauses while the component is mounted. With a store in place of options, several components share it.
 *
 * @example
 * const { status, text, pending, approve } = useRun({ runId, api: '/api' })
 * const approveAll = () => pending.map(({ callId }) => approve(callId))
 */
export function useRun(source: FollowedRunOptions | FollowedRunStore): FollowedRun {
  const store = useSource({ source, keyOf: runKey, create: createRunStore })
  const state = useSyncExternalStore(store.subscribe, store.getSnapshot, store.getServerSnapshot)
  return useMemo(() => ({ ...store, ...state, store }), [store, state])
}

/**
 * The store of a run for the components below, which read their parts of it with `useStore`.
 *
 * @example
 * const run = useRunStore({ runId })
 * const status = useStore(run, (state) => state.status)
 */
export function useRunStore(options: FollowedRunOptions): FollowedRunStore {
  return useSource({ source: options, keyOf: runKey, create: createRunStore })
}

function runKey({ api = '', runId, children = false, deltas = true }: FollowedRunOptions): string {
  return `${api} ${runId} ${children} ${deltas}`
}
