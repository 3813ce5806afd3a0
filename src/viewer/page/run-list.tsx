import type { Store } from './store.js'
import { countOf, moneyOf, plainText } from './text/formatted-text.js'

/** The runs of the page, to pick one; without reading their logs. */
export function RunList({ store }: { readonly store: Store }) {
  const { book } = store
  if (book.roots.length === 0) return <p class="message">This page has no run.</p>
  return (
    <main class="runs" tabIndex={0} aria-label="Runs">
      <table>
        <thead>
          <tr>
            <th scope="col">Run</th>
            <th scope="col">Status</th>
            <th scope="col">Model</th>
            <th scope="col" class="number">
              Turns
            </th>
            <th scope="col" class="number">
              Calls
            </th>
            <th scope="col" class="number">
              Cost
            </th>
            <th scope="col">Begun</th>
          </tr>
        </thead>
        <tbody>
          {book.roots.map(({ runId, summary }) => (
            <tr key={runId}>
              <td class="prompt">
                <button type="button" class="nowrap" onClick={() => store.showRuns([runId])}>
                  {plainText(summary?.prompt || runId)}
                </button>
                <div class="quiet mono nowrap">{plainText(runId)}</div>
              </td>
              <td>
                <span class={`chip ${summary?.status ?? ''}`}>{plainText(summary?.status ?? 'unknown')}</span>
              </td>
              <td class="quiet">{plainText(summary?.model ?? '')}</td>
              <td class="number">{countOf(summary?.turns ?? 0)}</td>
              <td class="number">{countOf(summary?.calls ?? 0)}</td>
              <td class="number">{typeof summary?.costUsd === 'number' ? moneyOf(summary.costUsd) : '–'}</td>
              <td class="quiet">{plainText((summary?.startedAt ?? '').slice(0, 16).replace('T', ' '))}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </main>
  )
}
