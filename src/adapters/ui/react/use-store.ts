import { useEffect, useMemo, useRef, useState, useSyncExternalStore } from 'react'
import { sameMembers } from './readable-store.js'
import type { ReadableStore } from './readable-store.js'

/**
 * A part of what a store knows. The component renders again when that part has changed: not for each piece of a reply if it looks at
 * something else. A list or an object that the selector makes has changed when one of its members has; `isEqual` decides otherwise.
 *
 * @example
 * const pending = useStore(chat, ({ pending }) => pending)
 * const { phase, held } = useStore(chat, ({ phase, held }) => ({ phase, held }))
 */
export function useStore<State, Selected>(
  store: ReadableStore<State>,
  select: (state: State) => Selected,
  isEqual: (left: Selected, right: Selected) => boolean = sameMembers,
): Selected {
  /** What the component shows. A selector that is written in the component is another one each time it renders. */
  const shown = useRef<{ readonly value: Selected } | null>(null)
  const read = useMemo(() => {
    let last: { readonly state: State; readonly value: Selected } | null = null
    return (state: State): Selected => {
      if (last !== null && Object.is(last.state, state)) return last.value
      const before = last ?? shown.current
      const selected = select(state)
      const value = before !== null && isEqual(before.value, selected) ? before.value : selected
      last = { state, value }
      return value
    }
  }, [select, isEqual])
  const value = useSyncExternalStore(
    store.subscribe,
    () => read(store.getSnapshot()),
    () => read(store.getServerSnapshot()),
  )
  useEffect(() => {
    shown.current = { value }
  }, [value])
  return value
}

/** What a hook is given: options for a store of its own, or a store that others use too. */
export interface StoreSource<Store, Options> {
  readonly source: Store | Options
  /** Names what the options are about: under another name, another store is made. */
  readonly keyOf: (options: Options) => string
  readonly create: (options: Options) => Store
}

/** The store of a hook. One of its own gets the options of the latest render. */
export function useSource<Store extends Configurable, Options extends object>({
  source,
  keyOf,
  create,
}: StoreSource<Store, Options>): Store {
  const given = 'configure' in source ? source : null
  const options = source as Options
  const key = given === null ? keyOf(options) : null
  const made = (): { readonly key: string | null; readonly store: Store } => ({ key, store: given ?? create(options) })
  const [held, setHeld] = useState(made)
  const isHeld = given === null ? held.key === key : held.store === given
  const now = isHeld ? held : made()
  // React renders again at once with what is held then.
  if (!isHeld) setHeld(now)
  useEffect(() => {
    if (given === null) now.store.configure(options)
  })
  return now.store
}

interface Configurable {
  readonly configure: (options: object) => void
}
