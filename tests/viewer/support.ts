import { viewer } from 'thinharness/viewer'
import type { ViewerOptions, ViewerSource } from 'thinharness/viewer'
import { Book } from '#viewer/reading/book.js'
import { readContainer } from '#viewer/reading/container.js'
import type { Container } from '#viewer/reading/container.js'

/** A template without a page: the data are read as a page reads them. */
export const TEMPLATE = `<title></title><meta content="connect-src 'none'"><!--logs-->`

/** The data in a page. */
export async function dataOf(page: string): Promise<Container> {
  const text = /<script type="text\/plain" id="logs">([A-Za-z0-9+/=]*)<\/script>/.exec(page)?.[1]
  if (text === undefined) throw new Error('Expected the page to have its data.')
  return readContainer(text)
}

/** What a page reads of a source. */
export async function bookOf(source: ViewerSource, options: ViewerOptions = {}): Promise<Book> {
  const { header, logs } = await dataOf(await viewer(source, { page: TEMPLATE, ...options }))
  return new Book(header, logs)
}

/** The lines of a log, as a file has them. */
export function textOf(events: readonly object[]): string {
  return events.map((event) => `${JSON.stringify(event)}\n`).join('')
}
