import 'uplot/dist/uPlot.min.css'
import './page.css'
import { render } from 'preact'
import { Book } from '../reading/book.js'
import { readContainer } from '../reading/container.js'
import { App } from './app.js'
import { follow } from './follow-run.js'
import { Store } from './store.js'

const page = document.getElementById('page')
if (page !== null) await open(page)

async function open(target: HTMLElement): Promise<void> {
  const text = document.getElementById('logs')?.textContent ?? ''
  const missing = missingIn(text)
  if (missing !== null) {
    say(target, missing)
    return
  }
  try {
    const { header, logs } = await readContainer(text)
    // The text is as long as the log is compressed: it is not needed twice.
    document.getElementById('logs')?.remove()
    document.title = header.title
    const store = new Store(new Book(header, logs), () => render(<App store={store} />, target))
    store.followAddress(null)
    store.set({})
    if (header.live !== undefined) void follow(store, header.live)
    Object.assign(globalThis, { viewerStore: store })
  } catch (error) {
    say(target, `The log in this page cannot be read. ${error instanceof Error ? error.message : String(error)}`)
  }
}

function missingIn(text: string): string | null {
  if (typeof DecompressionStream === 'undefined')
    return 'This browser has no DecompressionStream, which unpacks the log in this page. Any browser since 2023 has it.'
  return text === '' ? 'This page has no log in it: `thinharness view` writes pages that have one.' : null
}

function say(target: HTMLElement, words: string): void {
  render(
    <p class="message" role="alert">
      {words}
    </p>,
    target,
  )
}
