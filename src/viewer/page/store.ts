import type { TranscriptEntry } from '#contracts/entry.js'
import { problemsOf } from '../finding/problems.js'
import type { RunProblem } from '../finding/problems.js'
import { requestAt } from '../finding/request.js'
import type { SearchHit } from '../finding/search.js'
import type { Book } from '../reading/book.js'
import { contentText, envelopeContent, memberOf, objectAt, objectsAt, textAt, timeAt } from '../reading/event-fields.js'
import type { EventPlace, RunNode, TurnNode } from '../reading/nodes.js'
import { rowOf, rowsOf } from './list/rows.js'
import { pauseWords } from './list/step-row.js'
import type { Row } from './list/rows.js'
import type { ListHandle, ScrollPlace } from './list/virtual-list.js'

export type ReadingKind = 'conversation' | 'steps'
export type ThemeChoice = 'system' | 'light' | 'dark'

/** What is on screen. */
export interface PageView {
  /** Runs that stand one after the other; none: the list of runs. */
  readonly runIds: readonly string[]
  /** The run that they are compared with. */
  readonly compared: string | null
  readonly reading: ReadingKind
  readonly theme: ThemeChoice
  /** Key of the chosen row. */
  readonly chosen: string | null
  /** The chosen event. */
  readonly event: EventPlace | null
  readonly turned: ReadonlySet<string>
  readonly hasPanel: boolean
  readonly hasPlots: boolean
  readonly hasSearch: boolean
  /** The axis of time shows the rows on screen only. */
  readonly isZoomed: boolean
  readonly sheet: 'help' | 'problems' | null
  /** What the search looks for, and where it looks. */
  readonly query: string
}

export type LiveState = 'live' | 'lost' | 'ended'

/** The one key under which a browser keeps something: the theme and the reading, nothing of the log. */
const KEPT = 'thinharness-viewer'

/** The state of the page, and the ways to change it. */
export class Store {
  readonly book: Book
  view: PageView
  /** Set by the list of rows. */
  readonly list: { current: ListHandle | null } = { current: null }
  /** Whether a live page has its server; null for a saved page. */
  connection: LiveState | null = null
  /** What the search has found so far, and at which hit the reader is; -1: at none. */
  found: { readonly hits: readonly SearchHit[]; readonly at: number; readonly isDone: boolean } = {
    hits: [],
    at: -1,
    isDone: true,
  }
  #rows: { readonly of: readonly unknown[]; readonly rows: readonly Row[] } = { of: [], rows: [] }
  #problems: { readonly of: readonly unknown[]; readonly problems: readonly RunProblem[] } = { of: [], problems: [] }
  #placeBefore: { readonly top: ScrollPlace; readonly chosen: string | null } | null = null
  #staysAtEnd = false
  readonly #redraw: () => void

  constructor(book: Book, redraw: () => void) {
    this.book = book
    // Once for all that changes at a time, and never while the page is being drawn.
    let isComing = false
    this.#redraw = () => {
      if (isComing) return
      isComing = true
      queueMicrotask(() => {
        isComing = false
        redraw()
      })
    }
    const { header } = book
    const isThread = header.threadId !== undefined
    const first = isThread ? book.roots.map(({ runId }) => runId) : header.root === null ? [] : [header.root]
    this.view = {
      ...{ runIds: first, compared: header.compare ?? null, chosen: null, event: null, turned: new Set() },
      ...{ hasPanel: matchMedia('(min-width: 900px)').matches, hasPlots: false, hasSearch: false, isZoomed: false },
      ...{ sheet: null, query: '', reading: 'steps', theme: 'system' },
      ...kept(),
    }
  }

  set(change: Partial<PageView>): void {
    const { theme, reading } = this.view
    if (change.reading !== undefined && change.reading !== reading) {
      const top = this.list.current?.place() ?? null
      this.#placeBefore = top && { top, chosen: this.view.chosen }
    }
    this.view = { ...this.view, ...change }
    if (this.view.theme !== theme || this.view.reading !== reading) keep(this.view)
    this.#redraw()
  }

  get runs(): readonly RunNode[] {
    return this.view.runIds.flatMap((id) => this.book.run(id) ?? [])
  }

  /** The rows of the runs on screen; the same list until something changes. */
  get rows(): readonly Row[] {
    const of = [this.view.runIds, this.view.turned, this.book.version]
    if (this.#rows.of.length === 0 || this.#rows.of.some((each, index) => each !== of[index])) {
      const childrenOf = (runId: string, callId: string) => this.book.childrenOf(runId, callId)
      this.#rows = { of, rows: rowsOf(this.runs, { childrenOf, turned: this.view.turned }) }
    }
    return this.#rows.rows
  }

  get chosenRow(): Row | undefined {
    return this.rows.find(({ key }) => key === this.view.chosen)
  }

  /** Chooses a row, and brings it on screen. */
  choose(row: Row | undefined, change: Partial<PageView> = {}): void {
    if (row === undefined) return
    const event = { runId: row.run.runId, seq: row.seq }
    this.set({ chosen: row.key, event, ...change })
    this.list.current?.show(row.key)
    this.#address(event, 'replace')
  }

  /** Chooses the row some places below, or above; with `kind`, the next one of that kind. */
  move(step: 1 | -1, fits: (row: Row) => boolean = () => true): void {
    const { rows } = this
    const now = rows.findIndex(({ key }) => key === this.view.chosen)
    for (let at = now < 0 && step < 0 ? rows.length - 1 : now + step; at >= 0 && at < rows.length; at += step) {
      const row = rows[at]
      if (row !== undefined && fits(row)) return this.choose(row)
    }
  }

  /** In a reading that has just been chosen: shows what the other one showed, or the row that was chosen before this one was drawn. */
  showPlaceBefore(): void {
    const before = this.#placeBefore
    if (before === null) return
    this.#placeBefore = null
    if (this.view.chosen !== null && this.view.chosen !== before.chosen)
      return this.list.current?.show(this.view.chosen)
    this.list.current?.restore({ key: before.top.key, offset: 0 })
    const [top, chosen] = [before.top.key, this.view.chosen].map((key) => this.rows.findIndex((row) => row.key === key))
    if (this.view.chosen !== null && top !== undefined && chosen !== undefined && chosen >= top && chosen < top + 30)
      this.list.current?.show(this.view.chosen)
  }

  fold(row: Row | undefined): void {
    if (row === undefined || row.fold === null) return
    const turned = new Set(this.view.turned)
    if (!turned.delete(row.key)) turned.add(row.key)
    this.set({ turned })
  }

  /** Goes to an event of any run: what hides it is unfolded. The place before it can be returned to. */
  goTo(place: EventPlace, change: Partial<PageView> = {}, history: 'push' | 'replace' = 'push'): void {
    const run = this.book.run(place.runId)
    if (run === null) return
    const runIds = this.#above(run)
    const shows = this.view.runIds.includes(runIds.top.runId)
    const { key, around } = rowOf(run, place.seq)
    this.#address(place, history)
    if (!shows) this.set({ runIds: [runIds.top.runId], turned: new Set(), compared: null })
    this.#open([...runIds.around, ...around])
    this.set({ chosen: key, event: place, ...change })
    // The list knows the new rows once they are drawn.
    requestAnimationFrame(() => this.list.current?.show(key))
  }

  /** The run at the top above a run, and the rows that must be open to see it. */
  #above(run: RunNode): { readonly top: RunNode; readonly around: readonly string[] } {
    const around: string[] = []
    let top = run
    for (;;) {
      const parent = top.parentRunId === null ? null : this.book.run(top.parentRunId)
      if (parent === null || this.view.runIds.includes(top.runId)) return { top, around }
      const call = parent.calls.get(top.parentCallId ?? '')
      around.unshift(
        ...(call === undefined ? [] : [`${parent.runId}/turn/${call.turn}`, `${parent.runId}/call/${call.callId}`]),
        `${top.runId}/run`,
      )
      top = parent
    }
  }

  /** Opens rows, from the outermost to the innermost. */
  #open(keys: readonly string[]): void {
    for (const key of keys) {
      const row = this.rows.find((each) => each.key === key)
      if (row?.fold === 'folded') this.fold(row)
    }
  }

  connected(connection: LiveState): void {
    if (this.connection === connection) return
    this.connection = connection
    this.#redraw()
  }

  /** Takes an event of a run that goes on. True if it is new. */
  takes(event: object): boolean {
    // Asked now: the list may be drawn with the event before `grown` is called.
    this.#staysAtEnd ||= this.list.current?.isAtEnd() === true
    return this.book.append(event as Parameters<Book['append']>[0])
  }

  /** Draws what has come. The place is kept, unless the last row was on screen: then the new last row is. */
  grown(): void {
    this.#redraw()
    if (!this.#staysAtEnd) return
    requestAnimationFrame(() => {
      this.#staysAtEnd = false
      const last = this.rows.at(-1)
      if (last !== undefined) this.list.current?.show(last.key)
    })
  }

  /** Goes to the next hit of the search, or to the one before; what hides it is unfolded. */
  nextHit(step: 1 | -1): void {
    const { hits, at } = this.found
    if (hits.length === 0) return
    const next = at < 0 && step < 0 ? hits.length - 1 : (at + step + hits.length) % hits.length
    const hit = hits[next]
    this.found = { ...this.found, at: next }
    if (hit !== undefined) this.goTo(hit, {}, at < 0 ? 'push' : 'replace')
  }

  /** What went wrong in the runs on screen, the gravest first. */
  get problems(): readonly RunProblem[] {
    const of = [this.view.runIds, this.book.version]
    if (this.#problems.of.length === 0 || this.#problems.of.some((each, index) => each !== of[index])) {
      const problems = this.view.runIds.flatMap((runId) => problemsOf(this.book, runId))
      this.#problems = { of, problems: [...problems].sort((one, other) => Number(other.isGrave) - Number(one.isGrave)) }
    }
    return this.#problems.problems
  }

  /** Goes to the next problem in the order of time, or to the one before; what hides it is unfolded. */
  nextProblem(step: 1 | -1): void {
    const { event } = this.view
    const inOrder = [...this.problems].sort((one, other) => (one.at - other.at) * step || (one.seq - other.seq) * step)
    const now = event === null ? 0 : this.#timeOf(event)
    const isAfter = (problem: RunProblem) => {
      if (event === null) return true
      return problem.at === now ? (problem.seq - event.seq) * step > 0 : (problem.at - now) * step > 0
    }
    const next = inOrder.find(isAfter) ?? inOrder[0]
    if (next !== undefined) this.goTo(next)
  }

  #timeOf(event: EventPlace): number {
    const known = this.problems.find(({ runId, seq }) => runId === event.runId && seq === event.seq)
    return known?.at ?? timeAt(this.book.event(event))
  }

  /** The run at the top of the runs above a run. */
  rootOf(runId: string): string {
    const parent = this.book.run(runId)?.parentRunId
    return typeof parent === 'string' && this.book.has(parent) ? this.rootOf(parent) : runId
  }

  /** Copies the chosen event as JSON, its address, or what its row says. */
  async copy(what: 'json' | 'address' | 'text'): Promise<void> {
    const { event } = this.view
    const row = this.chosenRow
    if (event === null || row === undefined) return
    if (what === 'text') return copyText(textOfRow(row, this.book))
    await copyText(what === 'json' ? this.book.lineOf(event) : `${location.href.replace(/#.*/, '')}${addressOf(event)}`)
  }

  /** Copies what the model saw at a turn, as text. */
  async copyPrompt({ runId, index }: TurnNode): Promise<void> {
    const entries = requestAt(this.book, runId, index)?.entries ?? []
    await copyText(entries.map(entryText).join('\n\n'))
  }

  /** The runs on screen and all their child runs; in the list of runs, all runs. */
  get runIdsBelow(): readonly string[] {
    if (this.view.runIds.length === 0) return this.book.runIds
    const below = (runId: string): string[] => [
      runId,
      ...this.book.childrenOf(runId).flatMap((child) => below(child.runId)),
    ]
    return this.view.runIds.flatMap(below)
  }

  /** Saves the logs of the runs on screen, with those of their child runs, as they were stored. */
  save(): void {
    const ids = this.runIdsBelow
    const pieces = ids.map((runId) => this.book.bytesOf(runId) as Uint8Array<ArrayBuffer>)
    const link = document.createElement('a')
    link.href = URL.createObjectURL(new Blob(pieces, { type: 'application/x-ndjson' }))
    link.download = `${(ids[0] ?? 'runs').replace(/[^\w.-]/g, '_')}.jsonl`
    link.click()
    URL.revokeObjectURL(link.href)
  }

  /** Shows runs from their beginning. */
  showRuns(runIds: readonly string[]): void {
    this.set({ runIds, chosen: null, event: null, turned: new Set(), compared: null })
    const [runId] = runIds
    this.#address(runId === undefined ? null : { runId, seq: 0 }, 'push')
  }

  #address(event: EventPlace | null, how: 'push' | 'replace'): void {
    const state = { place: this.list.current?.place() ?? null, runIds: this.view.runIds }
    try {
      if (how === 'push') {
        history.replaceState(state, '')
        history.pushState(null, '', addressOf(event))
      } else history.replaceState(state, '', addressOf(event))
    } catch {
      // Browsers limit how often an address changes: the place is chosen all the same.
    }
  }

  /** Goes to the event that the address names, and back to where the reader was. */
  followAddress(state: unknown): void {
    const { place, runIds } = (state ?? {}) as {
      readonly place?: ScrollPlace | null
      readonly runIds?: readonly string[]
    }
    const event = eventIn(location.hash)
    if (runIds !== undefined) this.set({ runIds })
    if (event !== null && event.seq > 0) this.goTo(event, {}, 'replace')
    else if (event !== null && runIds === undefined) this.set({ runIds: [event.runId] })
    if (place !== undefined && place !== null) requestAnimationFrame(() => this.list.current?.restore(place))
  }
}

async function copyText(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text)
  } catch {
    // A browser may not give a page the clipboard: then its reader copies the text.
    prompt('Copy this text.', text)
  }
}

/** What a row says: a prompt, a reply, the result of a call, a note. */
function textOfRow(row: Row, book: Book): string {
  const { runId } = row.run
  const event = (seq: number | null) => (seq === null ? null : book.event({ runId, seq }))
  switch (row.kind) {
    case 'run':
    case 'prompt':
      return contentText(memberOf(event(row.seq), 'prompt'))
    case 'turn':
      return objectsAt(objectAt(event(row.turn.replySeq), 'entry'), 'parts')
        .map((part) => textAt(part, 'text'))
        .join('')
    case 'call': {
      const ended = event(row.call.endSeq)
      return memberOf(ended, 'ok') === true ? envelopeContent(textAt(ended, 'output')) : textAt(ended, 'message')
    }
    case 'mark':
      return row.mark.text
    case 'pause':
      return pauseWords(row.pause)
  }
}

/** An entry of a transcript as text: who, and what. */
function entryText(entry: TranscriptEntry): string {
  const content = entry.role === 'assistant' ? entry.parts : entry.content
  const parts = typeof content === 'string' ? [content] : content.map(partText)
  return `## ${entry.role}${entry.role === 'tool' ? ` (${entry.name})` : ''}\n\n${parts.join('\n')}`
}

function partText(part: { readonly type: string }): string {
  if ('text' in part) return String(part.text)
  return 'arguments' in part && 'name' in part ? `→ ${String(part.name)} ${String(part.arguments)}` : `[${part.type}]`
}

/** The address of an event within the page. */
export function addressOf(event: EventPlace | null): string {
  return event === null ? '#' : `#seq=${event.seq}&run=${encodeURIComponent(event.runId)}`
}

function eventIn(hash: string): EventPlace | null {
  const fields = new URLSearchParams(hash.replace(/^#/, ''))
  const runId = fields.get('run')
  return runId === null ? null : { runId, seq: Number(fields.get('seq') ?? 0) || 0 }
}

function kept(): Partial<Pick<PageView, 'theme' | 'reading'>> {
  try {
    const { theme, reading } = JSON.parse(localStorage.getItem(KEPT) ?? '{}') as Record<string, unknown>
    return {
      ...((theme === 'light' || theme === 'dark') && { theme }),
      ...((reading === 'conversation' || reading === 'steps') && { reading }),
    }
  } catch {
    return {}
  }
}

function keep({ theme, reading }: PageView): void {
  try {
    localStorage.setItem(KEPT, JSON.stringify({ theme, reading }))
  } catch {
    // A page from a file may have no storage: the choice lasts as long as the page.
  }
}
