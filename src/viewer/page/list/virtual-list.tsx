import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { Heights } from './heights.js'

/** A place in a list that survives other heights: a row, and how far its top is above the upper edge. */
export interface ScrollPlace {
  readonly key: string
  readonly offset: number
}

export interface ListHandle {
  /** Scrolls until a row is on screen: not at all if it is, else to the upper third. */
  readonly show: (key: string) => void
  readonly place: () => ScrollPlace | null
  readonly restore: (place: ScrollPlace) => void
  /** Whether the last row is on screen. */
  readonly isAtEnd: () => boolean
}

interface VirtualListProps<Row extends { readonly key: string }> {
  readonly rows: readonly Row[]
  /** The height to assume of a row that was never on screen, in px. */
  readonly guess: (row: Row) => number
  readonly render: (row: Row, index: number) => ComponentChildren
  readonly handle: { current: ListHandle | null }
  readonly onRange?: (from: number, to: number) => void
  /** Attributes of the element around the rows. */
  readonly around: Readonly<Record<string, string | number | undefined>>
}

interface DrawnRow<Row extends { readonly key: string }> {
  readonly row: Row
  readonly index: number
  readonly render: VirtualListProps<Row>['render']
  readonly content: ComponentChildren
}

/** Rows above and below the screen, in px, and the most rows in the document. */
const MARGIN = 500
const MOST_ROWS = 200

/** Rows of any height, of which only those near the screen are in the document. Heights are measured as rows appear. */
export function VirtualList<Row extends { readonly key: string }>(props: VirtualListProps<Row>) {
  const { rows, render, handle, onRange, around } = props
  const box = useRef<HTMLDivElement>(null)
  const inner = useRef<HTMLDivElement>(null)
  const anchor = useRef<Anchor>({ key: rows[0]?.key ?? '', offset: 0, index: 0 })
  const [, redraw] = useState(0)
  const measures = useMeasures(props)
  const { heights, places } = measures
  anchor.current.index = places.get(anchor.current.key) ?? Math.min(anchor.current.index, Math.max(0, rows.length - 1))
  const wanted = () => heights.top(anchor.current.index) + anchor.current.offset

  const high = box.current?.clientHeight ?? 900
  const { top, from, to, first, last } = windowOf(heights, wanted(), high)
  useEffect(() => onRange?.(first, last), [first, last, rows])

  const moveTo = ({ key, offset }: ScrollPlace) => {
    anchor.current = { key, offset, index: places.get(key) ?? anchor.current.index }
    redraw((count) => count + 1)
  }
  const { show, forget } = useShow(box, measures, moveTo)

  /** Takes the heights of what is on screen, and keeps the row at the upper edge where it is. */
  const settle = () => {
    if (box.current === null || inner.current === null) return
    const isOther = measure(inner.current, rows, measures)
    const aim = Math.round(wanted())
    if (Math.abs(box.current.scrollTop - aim) > 1) box.current.scrollTop = aim
    if (isOther) redraw((count) => count + 1)
  }
  useLayoutEffect(settle)
  useResizes([box, inner], settle)

  handle.current = {
    show,
    place: () => anchor.current,
    restore: moveTo,
    isAtEnd: () => top + high >= heights.top(rows.length) - 40,
  }
  const scrolled = () => {
    const y = box.current?.scrollTop ?? 0
    const index = heights.at(y)
    const key = rows[index]?.key
    if (key === undefined || Math.abs(y - wanted()) <= 1) return
    forget()
    moveTo({ key, offset: y - heights.top(index) })
  }
  const drawn = useDrawn(render)
  return (
    <div class="list" ref={box} onScroll={scrolled}>
      <div class="list-all" style={{ height: `${heights.top(rows.length)}px` }}>
        <div class="list-rows" ref={inner} style={{ transform: `translateY(${heights.top(from)}px)` }} {...around}>
          {rows.slice(from, to).map((row, offset) => drawn(row, from + offset))}
        </div>
      </div>
    </div>
  )
}

/** Brings a row on screen: at once, or once the list has it, since rows that have just come are drawn a little later. */
function useShow(
  box: { readonly current: HTMLElement | null },
  { heights, places }: Measures,
  moveTo: (place: ScrollPlace) => void,
): { readonly show: (key: string) => void; readonly forget: () => void } {
  const awaited = useRef<string | null>(null)
  const show = (key: string) => {
    const index = places.get(key)
    awaited.current = index === undefined ? key : null
    if (index === undefined || box.current === null) return
    const [start, end] = [heights.top(index), heights.top(index + 1)]
    const { scrollTop, clientHeight } = box.current
    if (start < scrollTop || Math.min(end, start + clientHeight / 2) > scrollTop + clientHeight)
      moveTo({ key, offset: -Math.min(clientHeight / 3, start) })
  }
  useLayoutEffect(() => {
    if (awaited.current !== null) show(awaited.current)
  })
  const forget = () => {
    awaited.current = null
  }
  return { show, forget }
}

/** The rows on screen, and those that are in the document because they are near it. */
function windowOf(heights: Heights, wanted: number, high: number) {
  const top = Math.max(0, Math.min(wanted, heights.top(heights.count) - high))
  const from = Math.max(0, heights.at(top - MARGIN))
  const to = Math.min(heights.count, heights.at(top + high + MARGIN) + 1, from + MOST_ROWS)
  return { top, from, to, first: heights.at(top), last: heights.at(top + high) }
}

/** The place at the upper edge, and the index that its row had when it was last seen. */
type Anchor = ScrollPlace & { index: number }

interface Measures {
  readonly heights: Heights
  /** The indexes of the rows, by their keys. */
  readonly places: ReadonlyMap<string, number>
  /** Heights that were measured, by the keys of their rows. */
  readonly known: Map<string, number>
}

function useMeasures<Row extends { readonly key: string }>({ rows, guess }: VirtualListProps<Row>): Measures {
  const { current: known } = useRef(new Map<string, number>())
  return useMemo(() => {
    const heightAt = (index: number) => {
      const row = rows[index]
      return row === undefined ? 0 : (known.get(row.key) ?? guess(row))
    }
    return { heights: new Heights(rows.length, heightAt), places: new Map(rows.map(({ key }, at) => [key, at])), known }
  }, [rows, guess])
}

/** Takes the heights of the rows in the document. True if one has another height than was known. */
function measure(inner: HTMLElement, rows: readonly { readonly key: string }[], { heights, known }: Measures): boolean {
  let isOther = false
  for (const element of inner.children) {
    const index = Number((element as HTMLElement).dataset['index'])
    const { height } = element.getBoundingClientRect()
    const key = rows[index]?.key
    if (key === undefined || height === 0) continue
    known.set(key, height)
    isOther = heights.set(index, height) || isOther
  }
  return isOther
}

function useResizes(elements: readonly { readonly current: Element | null }[], onResize: () => void): void {
  const latest = useRef(onResize)
  latest.current = onResize
  useEffect(() => {
    const observer = new ResizeObserver(() => latest.current())
    for (const { current } of elements) if (current !== null) observer.observe(current)
    return () => observer.disconnect()
  }, [])
}

/** Draws rows; one that has not changed is not drawn again while the list scrolls. */
function useDrawn<Row extends { readonly key: string }>(
  render: VirtualListProps<Row>['render'],
): VirtualListProps<Row>['render'] {
  const { current: drawn } = useRef(new Map<string, DrawnRow<Row>>())
  return (row, index) => {
    const before = drawn.get(row.key)
    if (before?.row === row && before.index === index && before.render === render) return before.content
    const content = render(row, index)
    if (drawn.size > 4 * MOST_ROWS) drawn.clear()
    drawn.set(row.key, { row, index, render, content })
    return content
  }
}
