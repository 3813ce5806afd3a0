import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import { Worker } from 'node:worker_threads'
import { messageOf } from '#contracts/errors.js'
import { isObject } from '#util/json.js'
import { FileFailure } from './file-failure.js'
import { escapeControls } from './path-text.js'

/** Converts a page to text with an optional package. */
export interface Converter {
  readonly packageName: string
  /** In messages: `HTML is converted to Markdown`. */
  readonly purpose: string
  /**
   * Body of an async function with `load` (imports the package), `bytes` (a Uint8Array) and `base` (a URL). An error may have
   * an `errorType`.
   */
  readonly source: string
}

/** Rules for tables of data. A table that arranges a page, or whose cells contain lists, code or long texts, is text. */
const TABLES = `
    const cellsOf = (row) => Array.from(row.childNodes).filter(({ nodeName }) => nodeName === 'TD' || nodeName === 'TH')
    const isOfData = (row) => {
      const cells = cellsOf(row)
      return cells.length > 1 && cells.every((cell) => cell.textContent.length <= 1000)
    }
    const firstRow = (table) => {
      const isOfPage = table.getAttribute('role') === 'presentation' || table.querySelector('table, pre, ul, ol, form')
      const rows = isOfPage ? [] : Array.from(table.getElementsByTagName('tr'))
      return rows.length > 1 && rows.every(isOfData) ? rows[0] : null
    }
    const known = new Map()
    /** The first row of the table of data that a node is in; null if it is in none. */
    const firstRowOf = (node) => {
      let table = node
      while (table !== null && table.nodeName !== 'TABLE') table = table.parentNode
      if (table !== null && !known.has(table)) known.set(table, firstRow(table))
      return known.get(table) ?? null
    }
    const block = (text) => '\\n\\n' + text + '\\n\\n'
    const ofTable = (name, filter, replaced) => {
      const replacement = (text, node) => {
        const first = firstRowOf(node)
        return first === null ? block(text) : replaced(text, node === first ? first : null)
      }
      service.addRule(name, { filter, replacement })
    }
    ofTable('cells', ['td', 'th'], (text) => ' ' + text.trim().replace(/\\s*\\n\\s*/g, ' ').replaceAll('|', '\\\\|') + ' |')
    ofTable('rows', 'tr', (text, first) => '\\n|' + text + (first === null ? '' : '\\n|' + ' --- |'.repeat(cellsOf(first).length)))
    ofTable('sections', ['thead', 'tbody', 'tfoot'], (text) => text)
    ofTable('captions', 'caption', (text) => text.trim() + '\\n\\n')
    ofTable('tables', 'table', (text) => block(text.trim()))
`

export const HTML_TO_MARKDOWN: Converter = {
  packageName: 'turndown',
  purpose: 'HTML is converted to Markdown',
  source: `
    const { default: Turndown } = await load()
    const whole = (link) => {
      try {
        const url = new URL(link, base)
        return /^https?:|^mailto:/.test(url.protocol) ? url.href : ''
      } catch {
        return ''
      }
    }
    const service = new Turndown({ headingStyle: 'atx', codeBlockStyle: 'fenced', bulletListMarker: '-', emDelimiter: '*' })
    service.remove(['script', 'style', 'noscript', 'template', 'iframe', 'object', 'svg', 'canvas', 'link', 'meta'])
    service.addRule('title', { filter: 'title', replacement: (text) => text.trim() === '' ? '' : '\\n\\n' + text.trim() + '\\n\\n' })
    service.addRule('links', {
      filter: (node) => node.nodeName === 'A' && node.getAttribute('href') !== null,
      replacement: (text, node) => {
        const link = whole(node.getAttribute('href'))
        return link === '' || text.trim() === '' ? text : '[' + text.trim() + '](' + link + ')'
      },
    })
    service.addRule('images', {
      filter: 'img',
      replacement: (_text, node) => {
        const link = whole(node.getAttribute('src') ?? '')
        const words = (node.getAttribute('alt') ?? '').trim()
        return link === '' ? words : '![' + words + '](' + link + ')'
      },
    })
    ${TABLES}
    return service.turndown(new TextDecoder().decode(bytes))
  `,
}

export const PDF_TO_TEXT = pdfConverter("text.join('\\n\\n')")

/** The text of each page, as a JSON list. */
export const PDF_TO_PAGES = pdfConverter('JSON.stringify(text)')

function pdfConverter(result: string): Converter {
  return {
    packageName: 'unpdf',
    purpose: 'The text of a PDF is read',
    source: `
    const { getDocumentProxy, extractText } = await load()
    const { text } = await extractText(await getDocumentProxy(bytes), { mergePages: false })
    return ${result}
  `,
  }
}

/** Pages are untrusted: converting one has a limit of memory, and of time by the signal. */
const MAX_MEMORY_MB = 512

const FRAME = (source: string): string => `
  const { parentPort, workerData } = require('node:worker_threads')
  const load = async () => {
    const module = await import(workerData.packageUrl)
    return module.default?.default ? module.default : module
  }
  const { bytes, base } = workerData
  const convert = async () => {${source}}
  convert().then(
    (text) => parentPort.postMessage({ ok: true, text }),
    (error) => {
      const problem = String(error?.message ?? error).slice(0, 300)
      parentPort.postMessage({ ok: false, problem, errorType: error?.errorType })
    },
  )
`

export interface Conversion {
  /** The address that links are relative to. Default: none. */
  readonly base?: URL | undefined
  /** In messages. Default `page`. */
  readonly name?: string
  readonly signal: AbortSignal
}

/**
 * Converts a page in its own thread, so that a malicious page cannot block the process or use all memory.
 * @throws FileFailure `MissingDependency` with the command that installs it, `ConversionFailed`, or the type
 * of the converter's error; the signal's reason.
 */
export async function convertDocument(
  converter: Converter,
  bytes: Uint8Array,
  { base, name = 'page', signal }: Conversion,
): Promise<string> {
  signal.throwIfAborted()
  const copy = new Uint8Array(bytes)
  const worker = new Worker(FRAME(converter.source), {
    eval: true,
    workerData: { bytes: copy, base: base?.href, packageUrl: packageUrl(converter) },
    transferList: [copy.buffer],
    env: {},
    execArgv: [],
    stdout: true,
    stderr: true,
    resourceLimits: { maxOldGenerationSizeMb: MAX_MEMORY_MB },
  })
  const stopWorker = (): void => void worker.terminate()
  signal.addEventListener('abort', stopWorker, { once: true })
  try {
    return await workerResult(worker)
  } catch (error) {
    signal.throwIfAborted()
    const errorType = error instanceof FileFailure ? error.errorType : 'ConversionFailed'
    throw new FileFailure(errorType, escapeControls(`The ${name} could not be read: ${messageOf(error)}.`))
  } finally {
    signal.removeEventListener('abort', stopWorker)
    await worker.terminate()
  }
}

function packageUrl({ packageName, purpose }: Converter): string {
  try {
    return pathToFileURL(createRequire(import.meta.url).resolve(packageName)).href
  } catch {
    const message = `${purpose} by the package \`${packageName}\`, which is not installed: npm install ${packageName}`
    throw new FileFailure('MissingDependency', message)
  }
}

function workerResult(worker: Worker): Promise<string> {
  return new Promise((resolve, reject) => {
    worker.once('message', (result: unknown) => {
      if (!isObject(result)) reject(new Error('it returned no text'))
      else if (typeof result['text'] === 'string') resolve(result['text'])
      else reject(conversionFailure(result))
    })
    worker.once('error', reject)
    worker.once('exit', () => reject(new Error('it was stopped')))
  })
}

function conversionFailure({ problem, errorType }: Readonly<Record<string, unknown>>): FileFailure {
  return new FileFailure(typeof errorType === 'string' ? errorType : 'ConversionFailed', String(problem))
}
