import { useCallback, useEffect, useLayoutEffect, useMemo, useState } from 'preact/hooks'
import type { JSX } from 'preact'
import type { Damage, RunNode } from '../reading/nodes.js'
import { CompareView } from './details/compare.js'
import { EntryBody } from './details/entry-row.js'
import { Figures } from './header.js'
import { IconButton } from './text/icon-button.js'
import { nextTheme, pressed } from './keys.js'
import { Panel } from './details/panel.js'
import { Plots } from './details/plots.js'
import type { Row } from './list/rows.js'
import { RunList } from './run-list.js'
import { scaleOf } from './list/scale.js'
import type { TimeScale } from './list/scale.js'
import { SearchBar, markHits } from './search-bar.js'
import { Sheets } from './sheets.js'
import { StepCells, kindOf } from './list/step-row.js'
import type { Store } from './store.js'
import { VirtualList } from './list/virtual-list.js'
import { plainText, timeOf } from './text/formatted-text.js'

/** The whole page. */
export function App({ store }: { readonly store: Store }) {
  const { view, book } = store
  const [run] = store.runs
  useKeys(store)
  useEffect(() => {
    const { dataset } = document.documentElement
    if (view.theme === 'system') delete dataset['theme']
    else dataset['theme'] = view.theme
  }, [view.theme])
  useEffect(() => markHits(store.view.query))
  const other = view.compared === null ? null : book.run(view.compared)
  return (
    <div class="page">
      <Top store={store} run={run} />
      {run !== undefined && other === null && store.runs.length === 1 && <Figures run={run} />}
      <DamageBar store={store} />
      {book.header.redacted && (
        <p class="bar-note">
          <span>Events of this log were changed or left out before the page was written.</span>
        </p>
      )}
      {view.hasSearch && <SearchBar store={store} />}
      {view.hasPlots && run !== undefined && <Plots run={run} store={store} />}
      {run === undefined ? (
        <RunList store={store} />
      ) : other !== null ? (
        <CompareView store={store} left={run} right={other} />
      ) : (
        <main class={`main ${view.hasPanel ? '' : 'alone'}`}>
          <Rows store={store} key={view.reading} />
          {view.hasPanel && <Panel store={store} />}
        </main>
      )}
      <Sheets store={store} />
    </div>
  )
}

function useKeys(store: Store): void {
  // At once: a key that is pressed before the first picture counts.
  useLayoutEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key === 'Escape' && store.view.hasSearch && store.view.sheet === null)
        store.set({ hasSearch: false, query: '' })
      else pressed(event, store)
    }
    const onPopState = (event: PopStateEvent) => store.followAddress(event.state)
    addEventListener('keydown', onKey)
    addEventListener('popstate', onPopState)
    return () => {
      removeEventListener('keydown', onKey)
      removeEventListener('popstate', onPopState)
    }
  }, [store])
}

function Top({ store, run }: { readonly store: Store; readonly run: RunNode | undefined }) {
  const { view, book } = store
  const problems = store.problems.length
  return (
    <header class="top">
      <span class="logo" aria-hidden="true">
        <i />
        <i />
        <i />
        <i />
      </span>
      <h1 class="nowrap" title={plainText(book.header.title)}>
        {plainText(book.header.title)}
      </h1>
      {run !== undefined && <span class={`chip ${run.state}`}>{run.state}</span>}
      <LiveChip store={store} />
      <span class="space" />
      <div class="tools" role="toolbar" aria-label="View">
        <RunChoice store={store} />
        {run !== undefined && (
          <div class="group" role="group" aria-label="Reading">
            {(['conversation', 'steps'] as const).map((reading) => (
              <button
                type="button"
                aria-pressed={view.reading === reading}
                onClick={() => store.set({ reading })}
                title={`${reading} (c)`}
              >
                {reading === 'steps' ? 'Steps' : 'Conversation'}
              </button>
            ))}
          </div>
        )}
        {problems > 0 && (
          <button type="button" class="bad" title="Problems (!)" onClick={() => store.set({ sheet: 'problems' })}>
            {`${problems} ${problems === 1 ? 'problem' : 'problems'}`}
          </button>
        )}
        <IconButton
          icon="search"
          label="Search (/)"
          isPressed={view.hasSearch}
          onClick={() => store.set({ hasSearch: !view.hasSearch })}
        />
        <IconButton
          icon="plots"
          label="Plots (p)"
          isPressed={view.hasPlots}
          onClick={() => store.set({ hasPlots: !view.hasPlots })}
        />
        <IconButton icon="theme" label={`Theme: ${view.theme} (T)`} onClick={() => nextTheme(store)} />
        <IconButton icon="save" label="Save the log (s)" onClick={() => store.save()} />
        <IconButton icon="help" label="Keys (?)" onClick={() => store.set({ sheet: 'help' })} />
      </div>
    </header>
  )
}

function LiveChip({ store }: { readonly store: Store }) {
  return store.connection === null ? null : (
    <span class={`chip ${store.connection === 'lost' ? 'paused' : 'running'}`} role="status">
      {store.connection === 'lost' ? 'connection lost' : store.connection === 'ended' ? 'ended' : 'live'}
    </span>
  )
}

/** Which run is plainText, if the page has several; and with which it is compared. */
function RunChoice({ store }: { readonly store: Store }) {
  const { book, view } = store
  const roots = book.roots
  if (roots.length < 2) return null
  const [shownId] = view.runIds
  return (
    <>
      <button type="button" onClick={() => store.showRuns([])} title="List of runs (r)">
        {`${roots.length} runs`}
      </button>
      {shownId !== undefined && (
        <select
          aria-label="Compare with"
          value={view.compared ?? ''}
          onChange={(event) => store.set({ compared: event.currentTarget.value || null })}
        >
          <option value="">Compare with …</option>
          {roots
            .filter(({ runId }) => runId !== shownId)
            .map(({ runId, summary }) => (
              <option value={runId}>{plainText(summary?.prompt || runId).slice(0, 60)}</option>
            ))}
        </select>
      )}
    </>
  )
}

function DamageBar({ store }: { readonly store: Store }) {
  // What is missing is a consequence of what is broken.
  const weight = ({ kind }: Damage) => Number(kind === 'missing')
  const damage = store.runs.flatMap((run) => run.damage).sort((one, other) => weight(one) - weight(other))
  const [first] = damage
  if (first === undefined) return null
  return (
    <div class="bar-note error" role="alert">
      <span>{plainText(first.message)}</span>
      {damage.length > 1 && (
        <span>{damage.length === 2 ? 'And one more place.' : `And ${damage.length - 1} more places.`}</span>
      )}
      <span>What can be read is shown.</span>
    </div>
  )
}

/** The rows of the runs, in the reading that is chosen. */
function Rows({ store }: { readonly store: Store }) {
  const { view, rows } = store
  const isSteps = view.reading === 'steps'
  const [range, setRange] = useState<readonly [number, number]>([0, 40])
  const scale = useMemo(() => scaleFor(store, range), [store, rows, view.isZoomed && range.join('-'), view.isZoomed])
  // A new reading begins where the other one was.
  useEffect(() => store.showPlaceBefore(), [store])
  const guess = useMemo(() => (isSteps ? () => 28 : guessOf), [isSteps])
  const active = rows.findIndex(({ key }) => key === view.chosen)
  const role = isSteps ? 'tree' : 'list'
  const render = useCallback(
    (row: Row, index: number) => (
      <RowFrame store={store} row={row} index={index} count={rows.length} key={row.key}>
        {isSteps ? (
          <StepCells row={row} scale={scale} />
        ) : (
          <div class="entry-in" style={{ paddingLeft: `${Math.max(0, row.depth - 1) * 20}px` }}>
            <EntryBody row={row} store={store} />
          </div>
        )}
      </RowFrame>
    ),
    [store, rows, isSteps, scale, view.chosen, view.event],
  )
  return (
    <div class="left">
      {isSteps && <StepsHead scale={scale} />}
      <VirtualList
        rows={rows}
        guess={guess}
        handle={store.list}
        onRange={(from, to) => {
          if (view.isZoomed && (from !== range[0] || to !== range[1])) setRange([from, to])
        }}
        around={{
          role,
          tabIndex: 0,
          'aria-label': isSteps ? 'Steps of the run' : 'Conversation',
          ...(isSteps && active >= 0 && { 'aria-activedescendant': `row-${active}` }),
        }}
        render={render}
      />
    </div>
  )
}

interface RowFrameProps {
  readonly store: Store
  readonly row: Row
  readonly index: number
  readonly count: number
  readonly children: JSX.Element
}

function RowFrame({ store, row, index, count, children }: RowFrameProps) {
  const { view } = store
  const isChosen = view.chosen === row.key
  const isSteps = view.reading === 'steps'
  const roles = isSteps
    ? {
        role: 'treeitem' as const,
        'aria-level': row.depth + 1,
        'aria-selected': isChosen,
        ...(row.fold !== null && { 'aria-expanded': row.fold === 'open' }),
      }
    : { role: 'listitem' as const, 'aria-current': isChosen, 'aria-setsize': count, 'aria-posinset': index + 1 }
  const clicked = (event: MouseEvent) => {
    const target = event.target as Element
    if (target.closest('[data-fold]') !== null) store.fold(row)
    else if (target.closest('a, button, summary, input, textarea') === null && String(getSelection()) === '')
      store.choose(row)
  }
  // The chosen row carries the number of the event that was asked for: it may show several.
  const seq = isChosen && view.event !== null ? view.event.seq : row.seq
  return (
    <div
      id={`row-${index}`}
      class={`row ${isSteps ? 'step' : 'entry'} ${row.kind === 'prompt' ? 'user' : row.kind} ${kindOf(row)} ${isChosen ? 'chosen' : ''}`}
      data-index={index}
      data-seq={seq}
      data-run={row.run.runId}
      onClick={clicked}
      onDblClick={(event) => {
        if (isSteps && (event.target as Element).closest('[data-fold]') === null) store.fold(row)
      }}
      {...roles}
    >
      {children}
    </div>
  )
}

function StepsHead({ scale }: { readonly scale: TimeScale }) {
  return (
    <div class="steps-head">
      <span>Step</span>
      <span class="right">Time</span>
      <span class="right tokens">Tokens</span>
      <span class="axis" aria-hidden="true">
        {scale.ticks.map(({ at, ms }) => (
          <span style={{ left: `${(at * 100).toFixed(2)}%` }}>{ms === 0 ? '0' : timeOf(ms)}</span>
        ))}
      </span>
    </div>
  )
}

/** The axis of all runs on screen, or of the rows on screen. */
function scaleFor(store: Store, [from, to]: readonly [number, number]): TimeScale {
  const { runs } = store
  const pauses = runs.flatMap((run) => run.pauses.map((pause) => ({ from: pause.from, to: pause.to ?? run.updatedAt })))
  const between = runs.slice(1).map((run, index) => ({ from: runs[index]?.updatedAt ?? 0, to: run.startedAt }))
  const whole = {
    from: Math.min(...runs.map(({ startedAt }) => startedAt)),
    to: Math.max(...runs.map(({ updatedAt }) => updatedAt)),
  }
  if (!store.view.isZoomed) return scaleOf(whole, [...pauses, ...between])
  const times = store.rows.slice(from, to + 1).flatMap(timesOf)
  return scaleOf(times.length === 0 ? whole : { from: Math.min(...times), to: Math.max(...times) }, [
    ...pauses,
    ...between,
  ])
}

function timesOf(row: Row): number[] {
  if (row.kind === 'turn') return [row.turn.startedAt, row.turn.repliedAt ?? row.turn.startedAt]
  if (row.kind === 'call') return [row.call.startedAt ?? row.call.requestedAt, row.call.endedAt ?? row.call.requestedAt]
  return []
}

/** The height that an entry of the conversation probably has, in px. */
function guessOf(row: Row): number {
  if (row.kind === 'turn') return 66 + Math.ceil(row.turn.text.length / 90) * 22
  return row.kind === 'call' ? 110 : row.kind === 'prompt' ? 96 : 44
}
