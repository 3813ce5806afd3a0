import { spawn } from 'node:child_process'
import type { ChildProcessByStdio } from 'node:child_process'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import type { Readable, Writable } from 'node:stream'
import { basename } from 'node:path'
import { pathToFileURL } from 'node:url'
import { messageOf } from '#contracts/errors.js'
import { listenToAbort } from '#util/abort.js'
import { isObject, parseJson } from '#util/json.js'
import { Slots } from '#util/queue/slots.js'
import { LONGEST_TIMER_MS } from '#util/timeout.js'
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

/** Of a conversion, in its own process: documents are untrusted, and three kilobytes can unpack to gigabytes. */
const MAX_MEMORY_MB = 512
const MAX_CPU_SECONDS = 120
const TIMEOUT_MS = 30_000
const MAX_TEXT_BYTES = 200_000_000

/** One at a time: the limit of memory is then that of all conversions together. */
const slots = new Slots(1)

/** Reads a line of JSON and the document from its input, and writes JSON. Also a program for Bun and Deno. */
const PROGRAM = (source: string): string => `
  const run = async () => {
    const prefix = 'node:'
    const { default: process } = await import(prefix + 'process')
    const { Buffer } = await import(prefix + 'buffer')
    globalThis.Buffer ??= Buffer
    for (const name of Object.keys(process.env)) delete process.env[name]
    for (const name of ['log', 'info', 'warn', 'error', 'debug']) console[name] = () => {}
    const chunks = []
    for await (const chunk of process.stdin) chunks.push(chunk)
    const input = Buffer.concat(chunks.splice(0))
    const head = input.indexOf(10)
    const { packageUrl, base } = JSON.parse(input.toString('utf8', 0, head))
    const bytes = new Uint8Array(input.subarray(head + 1))
    const load = async () => {
      const module = await import(packageUrl)
      return module.default?.default ? module.default : module
    }
    const convert = async () => {${source}}
    const answer = await convert().then(
      (text) => ({ ok: true, text }),
      (error) => ({ ok: false, problem: String(error?.message ?? error).slice(0, 300), errorType: error?.errorType }),
    )
    process.stdout.write(JSON.stringify(answer), () => process.exit(0))
  }
  run()
`

export interface Conversion {
  /** The address that links are relative to. Default: none. */
  readonly base?: URL | undefined
  /** In messages. Default `page`. */
  readonly name?: string
  /** Longest time, without the wait for other conversions, in ms. Default 30,000. */
  readonly timeoutMs?: number | undefined
  readonly signal: AbortSignal
}

/**
 * Converts a page in its own process, so that a malicious page cannot block this one or use all memory.
 * @throws FileFailure `MissingDependency` with the command that installs it, `ConversionFailed`, `Timeout`, or the type
 * of the converter's error; the signal's reason.
 */
export async function convertDocument(
  converter: Converter,
  bytes: Uint8Array,
  { base, name = 'page', timeoutMs = TIMEOUT_MS, signal }: Conversion,
): Promise<string> {
  const head = JSON.stringify({ base: base?.href, packageUrl: packageUrl(converter) })
  try {
    return await slots.within('', signal, async () => {
      const child = startConversion(PROGRAM(converter.source))
      child.stdin.on('error', () => undefined)
      child.stdin.end(Buffer.concat([Buffer.from(`${head}\n`), bytes]))
      return await conversionResult(child, timeoutMs, signal)
    })
  } catch (error) {
    signal.throwIfAborted()
    const errorType = error instanceof FileFailure ? error.errorType : 'ConversionFailed'
    throw new FileFailure(errorType, escapeControls(`The ${name} could not be read: ${messageOf(error)}.`))
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

type ConversionProcess = ChildProcessByStdio<Writable, Readable, null>

/** From this version on, Node reserves so much for compiled code, in MB, which the system counts as if it was used (measured: 526). */
const RESERVING_NODE = 23
const RESERVED_MB = 560

function maxDataMb(): number {
  const [major = ''] = process.versions.node.split('.')
  return MAX_MEMORY_MB + (Number(major) >= RESERVING_NODE ? RESERVED_MB : 0)
}

/** The limit of the heap does not count buffers, which the system limits where it can. */
const limits = (): string => `ulimit -c 0; ulimit -d ${maxDataMb() * 1024}; ulimit -t ${MAX_CPU_SECONDS}; exec "$@"`

function startConversion(program: string): ConversionProcess {
  const heap = `--max-old-space-size=${MAX_MEMORY_MB}`
  const { versions, execPath } = process
  // A program that contains Node may not be one.
  const isNode = !['deno', 'bun', 'electron'].some((name) => name in versions)
  const runtime = isNode && !/^node/i.test(basename(execPath)) ? 'node' : execPath
  const own = [
    runtime,
    ...('deno' in versions ? ['eval', program] : 'bun' in versions ? ['-e', program] : [heap, '-e', program]),
  ]
  const isWindows = process.platform === 'win32'
  const [first = '', ...args] = isWindows ? own : ['/bin/sh', '-c', `{ ${limits()}; } 2>/dev/null`, 'sh', ...own]
  const { PATH, SystemRoot } = process.env
  // An application of Electron or Bun is then their runtime, not itself once more.
  const env = { ELECTRON_RUN_AS_NODE: '1', BUN_BE_BUN: '1', PATH, SystemRoot }
  return spawn(first, args, { cwd: tmpdir(), env, stdio: ['pipe', 'pipe', 'ignore'], windowsHide: true })
}

async function conversionResult(child: ConversionProcess, timeoutMs: number, signal: AbortSignal): Promise<string> {
  const limit = AbortSignal.timeout(Math.min(timeoutMs, LONGEST_TIMER_MS))
  const stop = (): void => void child.kill('SIGKILL')
  const letGo = [signal, limit].map((each) => listenToAbort(each, stop))
  if (signal.aborted) stop()
  try {
    const output = await conversionOutput(child, stop)
    if (limit.aborted) throw new FileFailure('Timeout', `it took longer than ${timeoutMs} ms`)
    const answer = parseJson(output)
    if (!answer.ok || !isObject(answer.value))
      throw new Error(`it was stopped: it needs more than ${MAX_MEMORY_MB} MB of memory, or too much time`)
    const { text, problem, errorType } = answer.value
    if (typeof text === 'string') return text
    const type = typeof errorType === 'string' ? errorType : 'ConversionFailed'
    throw new FileFailure(type, typeof problem === 'string' ? problem : 'it returned no text')
  } finally {
    for (const each of letGo) each()
  }
}

function conversionOutput(child: ConversionProcess, stop: () => void): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  child.stdout.on('data', (chunk: Buffer) => {
    size += chunk.length
    if (size > MAX_TEXT_BYTES) stop()
    else chunks.push(chunk)
  })
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', () => resolve(size > MAX_TEXT_BYTES ? '' : Buffer.concat(chunks).toString()))
  })
}
