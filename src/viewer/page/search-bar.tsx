import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { search } from '../finding/search.js'
import type { SearchHit, LogSearch } from '../finding/search.js'
import type { Store } from './store.js'
import { countOf, plainText } from './text/formatted-text.js'

/** Time that the search takes before the page may draw, in ms. */
const SLICE = 12
/** Hits that are kept; more are counted. */
const MOST_HITS = 20_000

/** Kinds of events by which people look, in words. */
const KINDS: Readonly<Record<string, readonly string[]>> = {
  Prompts: ['run_started', 'run_queued', 'model_request_started'],
  Replies: ['model_message'],
  Calls: ['tool_call_started'],
  Results: ['tool_call_completed'],
  People: ['approval_requested', 'answer_received', 'approval_resumed'],
}

type Filter = Omit<LogSearch, 'text'>

/** A search over everything in the logs, by text, kind, tool, agent and failure. */
export function SearchBar({ store }: { readonly store: Store }) {
  const [text, setText] = useState(store.view.query)
  const [filter, setFilter] = useState<Filter>({})
  const field = useRef<HTMLInputElement>(null)
  const closeSearch = () => store.set({ hasSearch: false, query: '' })
  useEffect(() => field.current?.focus(), [])
  useEffect(() => lookFor(store, { runIds: store.runIdsBelow, ...filter, text }), [text, filter, store.book.version])
  const { hits, at, isDone } = store.found
  const many = `${countOf(hits.length)}${isDone ? '' : '+'}`
  return (
    <form
      class="search"
      role="search"
      onSubmit={(event) => {
        event.preventDefault()
        store.nextHit(1)
      }}
    >
      <input
        ref={field}
        type="search"
        aria-label="Search the log"
        placeholder="Search the log"
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === 'Escape') closeSearch()
          if (event.key !== 'Enter' || !event.shiftKey) return
          event.preventDefault()
          store.nextHit(-1)
        }}
      />
      <Filters store={store} filter={filter} onFilter={setFilter} />
      <output role="status">
        {hits.length === 0 ? (isDone ? 'No hits' : '…') : `${at < 0 ? '–' : at + 1} of ${many}`}
      </output>
      {([-1, 1] as const).map((step) => {
        const name = step < 0 ? 'Hit before' : 'Next hit'
        const key = step < 0 ? 'N' : 'n'
        return (
          <button
            type="button"
            title={`${name} (${key})`}
            aria-label={name}
            disabled={hits.length === 0}
            onClick={() => store.nextHit(step)}
          >
            {step < 0 ? '↑' : '↓'}
          </button>
        )
      })}
      <button type="button" onClick={closeSearch}>
        Close
      </button>
    </form>
  )
}

interface FiltersProps {
  readonly store: Store
  readonly filter: Filter
  readonly onFilter: (filter: Filter) => void
}

function Filters({ store, filter, onFilter }: FiltersProps) {
  const names = useMemo(() => namesIn(store), [store.rows])
  const kind = Object.keys(KINDS).find((name) => KINDS[name] === filter.kinds) ?? ''
  const set = (name: keyof Filter, value: Filter[keyof Filter] | null) => {
    const others = Object.entries(filter).filter(([key]) => key !== name)
    onFilter(Object.fromEntries(value === null ? others : [...others, [name, value]]))
  }
  const orNull = (value: string) => (value === '' ? null : value)
  return (
    <>
      <Choice
        label="Kind"
        value={kind}
        options={Object.keys(KINDS)}
        onValue={(value) => set('kinds', KINDS[value] ?? null)}
      />
      <Choice label="Tool" value={filter.tool} options={names.tools} onValue={(value) => set('tool', orNull(value))} />
      <Choice
        label="Agent"
        value={filter.agent}
        options={names.agents}
        onValue={(value) => set('agent', orNull(value))}
      />
      <label class="check">
        <input
          type="checkbox"
          checked={filter.failed === true}
          onChange={(event) => set('failed', event.currentTarget.checked ? true : null)}
        />
        Failed
      </label>
    </>
  )
}

interface ChoiceProps {
  readonly label: string
  readonly value: string | undefined
  readonly options: readonly string[]
  readonly onValue: (value: string) => void
}

function Choice({ label, value = '', options, onValue }: ChoiceProps) {
  if (options.length === 0) return null
  return (
    <select aria-label={label} value={value} onChange={(event) => onValue(event.currentTarget.value)}>
      <option value="">{label}</option>
      {options.map((each) => (
        <option value={each}>{plainText(each)}</option>
      ))}
    </select>
  )
}

/** Searches in slices, so that the page stays usable. Returns what ends it. */
function lookFor(store: Store, query: LogSearch): () => void {
  store.set({ query: query.text })
  const isEmpty = query.text === '' && Object.keys(query).length === 2
  store.found = { hits: [], at: -1, isDone: isEmpty }
  const found = isEmpty ? null : search(store.book, query)
  const hits: SearchHit[] = []
  let timer: ReturnType<typeof setTimeout> | undefined
  const goOn = () => {
    const end = performance.now() + SLICE
    let next = found?.next()
    for (; next?.done === false && performance.now() < end; next = found?.next())
      if (next.value !== null && hits.length < MOST_HITS) hits.push(next.value)
    if (next?.done === false && next.value !== null) hits.push(next.value)
    const isDone = next?.done !== false
    store.found = { hits, at: store.found.at, isDone }
    store.set({})
    if (!isDone) timer = setTimeout(goOn)
  }
  timer = setTimeout(goOn)
  return () => clearTimeout(timer)
}

function namesIn({ runs, book }: Store): { readonly tools: readonly string[]; readonly agents: readonly string[] } {
  const [tools, agents] = [new Set<string>(), new Set<string>()]
  const addNames = (run: Store['runs'][number]) => {
    if (run.agentName !== null) agents.add(run.agentName)
    for (const { toolName } of run.calls.values()) tools.add(toolName)
    for (const child of book.childrenOf(run.runId)) addNames(child)
  }
  runs.forEach(addNames)
  return { tools: [...tools].sort(), agents: [...agents].sort() }
}

/** Marks what was searched for in the texts on screen. The document stays as it is: the browser paints the marks. */
export function markHits(query: string): void {
  if (typeof Highlight === 'undefined') return
  CSS.highlights.delete('hit')
  const page = document.querySelector('.main')
  if (query.length < 2 || page === null) return
  const ranges: Range[] = []
  const words = query.toLowerCase()
  const texts = document.createTreeWalker(page, NodeFilter.SHOW_TEXT)
  for (let node = texts.nextNode(); node !== null && ranges.length < 500; node = texts.nextNode()) {
    const text = node.textContent?.toLowerCase() ?? ''
    // A text whose length changes with its case has no marks.
    if (text.length !== node.textContent?.length) continue
    for (let at = text.indexOf(words); at >= 0; at = text.indexOf(words, at + words.length)) {
      const range = new Range()
      range.setStart(node, at)
      range.setEnd(node, at + words.length)
      ranges.push(range)
    }
  }
  CSS.highlights.set('hit', new Highlight(...ranges))
}
