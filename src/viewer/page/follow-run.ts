import { followRun, FollowError } from '#adapters/ui/client/follow-run.js'
import type { Answer } from '#core/state/answers.js'
import type { LiveSource } from '../reading/container.js'
import type { Store } from './store.js'

/** How long a run that has paused is left alone before the page asks for more, in ms. */
const ASK_AGAIN = 2000
/** Events that come within this time are drawn together, in ms. */
const DRAW = 80

/** Follows the runs that had not ended when the page was made, over lost connections, until they end. */
export async function follow(store: Store, live: LiveSource): Promise<void> {
  const { book } = store
  const runIds = book.header.root === null ? book.roots.map(({ runId }) => runId) : [book.header.root]
  const open = runIds.filter((runId) => !runIsOver(store, runId))
  store.connected(open.length === 0 ? 'ended' : 'live')
  await Promise.all(open.map((runId) => followOne(store, live, runId)))
  store.connected('ended')
}

async function followOne(store: Store, live: LiveSource, runId: string): Promise<void> {
  const send: typeof fetch = async (input, init) => {
    try {
      const response = await fetch(input, init)
      store.connected(response.ok ? 'live' : 'lost')
      return response
    } catch (error) {
      store.connected('lost')
      throw error
    }
  }
  let after = store.book.cursorOf(runId)
  while (!runIsOver(store, runId)) {
    try {
      const url = `${live.url}runs/${encodeURIComponent(runId)}/events?children=1`
      for await (const event of followRun(url, { after, fetch: send })) {
        if (event.cursor !== '') after = event.cursor
        const { cursor: _cursor, ...stored } = event
        take(store, stored)
      }
    } catch (error) {
      if (!(error instanceof FollowError)) throw error
      store.connected('lost')
      return
    }
    // The run has paused, or has ended.
    if (!runIsOver(store, runId)) await new Promise((resolve) => setTimeout(resolve, ASK_AGAIN))
  }
}

let drawn: ReturnType<typeof setTimeout> | undefined

function take(store: Store, event: object): void {
  if (!store.takes(event)) return
  drawn ??= setTimeout(() => {
    drawn = undefined
    store.grown()
  }, DRAW)
}

function runIsOver(store: Store, runId: string): boolean {
  const state = store.book.run(runId)?.state
  return state === 'completed' || state === 'failed' || state === 'cancelled'
}

/** Sends answers to what a run waits for. Resolves to what is wrong, or null. */
export async function sendAnswers(live: LiveSource, runId: string, answers: readonly Answer[]): Promise<string | null> {
  try {
    const response = await fetch(`${live.url}runs/${encodeURIComponent(runId)}/answers`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ answers }),
    })
    if (response.ok) return null
    const { message } = (await response.json()) as { readonly message?: string }
    return message ?? `The server answered with status ${response.status}.`
  } catch {
    return 'The server cannot be reached.'
  }
}
