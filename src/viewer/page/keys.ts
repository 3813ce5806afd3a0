import type { Store } from './store.js'

/** An action of the page, and its key. */
export interface KeyAction {
  /** As in `KeyboardEvent.key`. */
  readonly keys: readonly string[]
  readonly name: string
  readonly run: (store: Store) => void
}

/** Every action has a key; the help shows this list. */
export const ACTIONS: readonly KeyAction[] = [
  { keys: ['j', 'ArrowDown'], name: 'Next row', run: (store) => store.move(1) },
  { keys: ['k', 'ArrowUp'], name: 'Row before', run: (store) => store.move(-1) },
  { keys: ['J'], name: 'Next turn', run: (store) => store.move(1, ({ kind }) => kind === 'turn') },
  { keys: ['K'], name: 'Turn before', run: (store) => store.move(-1, ({ kind }) => kind === 'turn') },
  { keys: ['Home'], name: 'First row', run: (store) => store.choose(store.rows[0]) },
  { keys: ['End'], name: 'Last row', run: (store) => store.choose(store.rows.at(-1)) },
  { keys: ['Enter', ' '], name: 'Fold or unfold the row', run: (store) => store.fold(store.chosenRow) },
  { keys: ['ArrowRight'], name: 'Unfold the row', run: (store) => foldTo(store, 'folded') },
  { keys: ['ArrowLeft'], name: 'Fold the row', run: (store) => foldTo(store, 'open') },
  { keys: ['c'], name: 'The other reading: conversation or steps', run: (store) => toggleReading(store) },
  { keys: ['d'], name: 'Details of the row', run: (store) => store.set({ hasPanel: !store.view.hasPanel }) },
  { keys: ['e'], name: 'Next problem', run: (store) => store.nextProblem(1) },
  { keys: ['E'], name: 'Problem before', run: (store) => store.nextProblem(-1) },
  { keys: ['!'], name: 'List of problems', run: (store) => store.set({ sheet: 'problems' }) },
  { keys: ['t'], name: 'Time: the whole run, or the rows on screen', run: (store) => toggleTime(store) },
  { keys: ['p'], name: 'Plots over the turns', run: (store) => store.set({ hasPlots: !store.view.hasPlots }) },
  { keys: ['/'], name: 'Search', run: (store) => store.set({ hasSearch: true }) },
  { keys: ['n'], name: 'Next hit', run: (store) => store.nextHit(1) },
  { keys: ['N'], name: 'Hit before', run: (store) => store.nextHit(-1) },
  { keys: ['y'], name: 'Copy the event as JSON', run: (store) => void store.copy('json') },
  { keys: ['Y'], name: 'Copy the text', run: (store) => void store.copy('text') },
  { keys: ['s'], name: 'Save the log', run: (store) => store.save() },
  { keys: ['T'], name: 'Theme: system, light or dark', run: (store) => nextTheme(store) },
  { keys: ['r'], name: 'List of runs', run: (store) => store.showRuns([]) },
  { keys: ['?'], name: 'This list', run: (store) => store.set({ sheet: 'help' }) },
]

/** Runs the action of a key, unless somebody types or a sheet is open. True if there was one. */
export function pressed(event: KeyboardEvent, store: Store): boolean {
  if (event.ctrlKey || event.metaKey || event.altKey || store.view.sheet !== null) return false
  const target = event.target instanceof HTMLElement ? event.target : null
  const isIn = (selector: string) => (target?.closest(selector) ?? null) !== null
  if (isIn('input, select, textarea, dialog')) return false
  // Buttons and links keep the keys by which they are pressed; in the panel the arrows scroll.
  if (/^(Enter| )$/.test(event.key) && isIn('button, a, summary')) return false
  if (/^(Arrow|Home|End)/.test(event.key) && isIn('.panel, .compare, .runs, .figures, summary')) return false
  const action = ACTIONS.find(({ keys }) => keys.includes(event.key))
  if (action === undefined) return false
  event.preventDefault()
  action.run(store)
  return true
}

function foldTo(store: Store, state: 'open' | 'folded'): void {
  if (store.chosenRow?.fold === state) store.fold(store.chosenRow)
}

export function toggleReading(store: Store): void {
  store.set({ reading: store.view.reading === 'steps' ? 'conversation' : 'steps' })
}

function toggleTime(store: Store): void {
  store.set({ isZoomed: !store.view.isZoomed, reading: 'steps' })
}

export function nextTheme(store: Store): void {
  const next = { system: 'light', light: 'dark', dark: 'system' } as const
  store.set({ theme: next[store.view.theme] })
}
