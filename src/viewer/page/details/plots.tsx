import { useEffect, useMemo, useRef } from 'preact/hooks'
import uPlot from 'uplot'
import { seriesOf } from '../../finding/series.js'
import type { TurnPoint } from '../../finding/series.js'
import type { RunNode } from '../../reading/nodes.js'
import { keys } from '../list/rows.js'
import type { Store } from '../store.js'
import { countOf, moneyOf, plainText, timeOf } from '../text/formatted-text.js'

interface PlotSeries {
  readonly name: string
  /** A custom property of the style. */
  readonly color: string
  /** One number for each turn; null where it is unknown. */
  readonly values: readonly (number | null)[]
}

interface PlotData {
  readonly title: string
  readonly unit: 'tokens' | 'usd' | 'ms' | 'percent'
  readonly series: readonly PlotSeries[]
  /** Turns that are marked, such as those that lost the cache. */
  readonly marked?: readonly number[]
}

interface PlotProps {
  readonly data: PlotData
  /** Called with a turn, from 1, that somebody clicked. */
  readonly onTurn: (index: number) => void
  /** Changes with the colours. */
  readonly theme: string
}

const WORDS = { tokens: countOf, usd: moneyOf, ms: timeOf, percent: (part: number) => `${Math.round(part)}%` }
const HEIGHT = 104

/** The plots of a run over its turns. */
export function Plots({ run, store }: { readonly run: RunNode; readonly store: Store }) {
  const points = useMemo(() => seriesOf(run), [run, store.book.version])
  const plots = useMemo(() => plotsOf(points), [points])
  const lost = points.filter(({ lostCache }) => lostCache !== null)
  return (
    <div class="plots" role="region" aria-label="Plots over the turns" tabIndex={0}>
      {plots.map((data) => (
        <Plot
          key={data.title}
          data={data}
          theme={store.view.theme}
          onTurn={(index) => store.choose(store.rows.find(({ key }) => key === keys.turn({ runId: run.runId, index })))}
        />
      ))}
      {lost.length > 0 && (
        <ul class="causes">
          {lost.slice(0, 3).map((point) => (
            <li>
              <button type="button" class="link" onClick={() => store.goTo(point)}>
                {`Turn ${point.turn}: ${plainText(point.lostCache ?? '')}`}
              </button>
            </li>
          ))}
        </ul>
      )}
    </div>
  )
}

function plotsOf(points: readonly TurnPoint[]): readonly PlotData[] {
  const all = (pick: (point: TurnPoint) => number | null) => points.map(pick)
  const marked = points.filter(({ lostCache }) => lostCache !== null).map(({ turn }) => turn)
  const percent = ({ cacheRate }: TurnPoint) => (cacheRate === null ? null : cacheRate * 100)
  return [
    {
      title: 'Tokens',
      unit: 'tokens',
      series: [
        { name: 'cached', color: '--tool', values: all(({ cached }) => cached) },
        { name: 'fresh', color: '--child', values: all(({ fresh }) => fresh) },
        { name: 'out', color: '--model', values: all(({ output }) => output) },
      ],
    },
    { title: 'Cache hits', unit: 'percent', marked, series: [{ name: 'hits', color: '--tool', values: all(percent) }] },
    {
      title: 'Cost, in sum',
      unit: 'usd',
      series: [{ name: 'cost', color: '--person', values: all(({ costSum }) => costSum) }],
    },
    {
      title: 'Time',
      unit: 'ms',
      series: [
        { name: 'reply', color: '--model', values: all(({ replyMs }) => replyMs) },
        { name: 'calls', color: '--tool', values: all(({ toolMs }) => toolMs) },
      ],
    },
  ]
}

/** Numbers over the turns of a run; a click leads to the turn. */
function Plot({ data, onTurn, theme }: PlotProps) {
  const place = useRef<HTMLDivElement>(null)
  const latest = useRef(onTurn)
  latest.current = onTurn
  useEffect(() => {
    const element = place.current
    if (element === null) return
    const color = (name: string) => getComputedStyle(element).getPropertyValue(name).trim() && resolved(element, name)
    const turns = data.series[0]?.values.map((_, index) => index + 1) ?? []
    const plot = new uPlot(
      optionsOf(data, color, element.clientWidth),
      [turns, ...data.series.map(({ values }) => [...values])],
      element,
    )
    const clicked = () => {
      const index = plot.cursor.idx
      if (index !== null && index !== undefined) latest.current(index + 1)
    }
    plot.over.addEventListener('click', clicked)
    const observer = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: HEIGHT }))
    observer.observe(element)
    return () => {
      observer.disconnect()
      plot.destroy()
    }
  }, [data, theme])
  const last = data.series.map(({ name, values }) => `${name}: ${String(values.length)} turns`).join(', ')
  return (
    <section class="plot">
      <h2>
        {data.title}
        {data.series.length > 1 &&
          data.series.map(({ name, color }) => (
            <span class="legend" style={{ '--series': `var(${color})` }}>
              {name}
            </span>
          ))}
      </h2>
      <div ref={place} role="img" aria-label={`${data.title} over the turns. ${last}`} />
    </section>
  )
}

function optionsOf(
  { unit, series, marked = [] }: PlotData,
  color: (name: string) => string,
  width: number,
): uPlot.Options {
  const inWords = WORDS[unit]
  const axis = { stroke: color('--quiet'), font: '10px system-ui', ticks: { show: false } }
  return {
    width,
    height: HEIGHT,
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 6 } },
    scales: { x: { time: false }, y: { range: (_plot, _low, high) => [0, high > 0 ? high * 1.08 : 1] } },
    axes: [
      {
        ...axis,
        size: 20,
        grid: { show: false },
        values: (_plot, at) => at.map((turn) => (Number.isInteger(turn) ? turn : '')),
      },
      {
        ...axis,
        size: 46,
        space: 28,
        grid: { stroke: color('--line'), width: 1 },
        values: (_plot, at) => at.map(inWords),
      },
    ],
    series: [
      {},
      ...series.map((each): uPlot.Series => {
        const stroke = color(each.color)
        const isShort = each.values.length < 60
        return {
          label: each.name,
          stroke,
          width: 1.5,
          fill: `${stroke}1f`,
          points: { show: isShort, size: 4, fill: stroke },
        }
      }),
    ],
    hooks: {
      draw: [
        (plot) => {
          const { ctx, bbox } = plot
          ctx.fillStyle = color('--warn')
          for (const turn of marked) ctx.fillRect(plot.valToPos(turn, 'x', true) - 1, bbox.top, 2, bbox.height)
        },
      ],
    },
  }
}

/** The colour that a custom property means now, as `#rrggbb`: a canvas does not know `light-dark()`. */
function resolved(element: HTMLElement, name: string): string {
  const probe = element.appendChild(document.createElement('span'))
  probe.style.color = `var(${name})`
  const numbers = getComputedStyle(probe).color.match(/\d+/g) ?? []
  probe.remove()
  return `#${numbers
    .slice(0, 3)
    .map((part) => Number(part).toString(16).padStart(2, '0'))
    .join('')}`
}
