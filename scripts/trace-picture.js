// Runs the quickstart with its scripted provider, traces it from its log and from those of its children, and writes what
// docs/tracing.md shows: the trace as OpenTelemetry's JSON, which viewers open, and a picture of it. Needs `npm run build`.
import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import * as prettier from 'prettier'
import { localTraces, otlpJson, traceLog } from '../dist/tracing/index.js'

const root = fileURLToPath(new URL('..', import.meta.url))
const COLOURS = { invoke_agent: '#8250df', chat: '#0969da', execute_tool: '#1a7f37' }
const page = join(root, 'docs/tracing')
const folder = mkdtempSync(join(tmpdir(), 'trace-picture-'))
try {
  const records = await tracedQuickstart(folder)
  const json = JSON.stringify(otlpJson(records, { serviceName: 'quickstart' }))
  writeFileSync(join(page, 'quickstart.otlp.json'), await prettier.format(json, { parser: 'json', printWidth: 120 }))
  writeFileSync(join(page, 'quickstart.svg'), picture(inTreeOrder(records)))
  console.log(`${records.length} spans.`)
} finally {
  rmSync(folder, { recursive: true, force: true })
}

async function tracedQuickstart(folder) {
  const workspace = join(folder, 'workspace')
  cpSync(join(root, 'examples/quickstart/workspace/notes'), join(workspace, 'notes'), { recursive: true })
  execFileSync(process.execPath, ['.build/examples/quickstart.js', '--model', 'scripted', '--workspace', workspace], {
    cwd: root,
    stdio: 'ignore',
  })
  const runs = join(workspace, '.thinharness', 'runs')
  const events = readdirSync(runs)
    .filter((name) => name.endsWith('.jsonl'))
    .flatMap((name) => linesOf(join(runs, name)))
  // Parents before their children, where both tell something in the same millisecond.
  const depth = (event) => (event.parentRunId === null ? 0 : 1)
  events.sort(
    (one, other) => Date.parse(one.at) - Date.parse(other.at) || depth(one) - depth(other) || one.seq - other.seq,
  )
  const dir = join(folder, 'traces')
  await traceLog(localTraces({ dir, captureContent: false }), events)
  const [project] = readdirSync(dir)
  return readdirSync(join(dir, project)).flatMap((name) => linesOf(join(dir, project, name)))
}

function linesOf(path) {
  return readFileSync(path, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
}

/** Each span with how deep it lies, its children behind it. */
function inTreeOrder(records, parent = null, depth = 0) {
  return records
    .filter(({ parentSpanId }) => parentSpanId === parent)
    .sort((one, other) => Date.parse(one.startedAt) - Date.parse(other.startedAt))
    .flatMap((record) => [{ ...record, depth }, ...inTreeOrder(records, record.spanId, depth + 1)])
}

function picture(spans) {
  const row = 22
  const [left, width] = [300, 560]
  const height = spans.length * row + 34
  const start = Math.min(...spans.map(({ startedAt }) => Date.parse(startedAt)))
  const end = Math.max(...spans.map(({ endedAt }) => Date.parse(endedAt)))
  const x = (at) => left + ((Date.parse(at) - start) / Math.max(1, end - start)) * width
  const rows = spans.map((span, index) => {
    const y = 26 + index * row
    const [from, to] = [x(span.startedAt), x(span.endedAt)]
    const label = labelOf(span)
    const isLate = to > left + width - 90
    return [
      `<text x="${12 + span.depth * 18}" y="${y + 14}">${escaped(span.name)}</text>`,
      `<rect x="${from.toFixed(1)}" y="${y + 3}" width="${Math.max(2, to - from).toFixed(1)}" height="${row - 7}" rx="2" fill="${COLOURS[span.attributes['gen_ai.operation.name']]}"/>`,
      `<text class="note" x="${(isLate ? from - 6 : to + 6).toFixed(1)}" y="${y + 14}" text-anchor="${isLate && span.depth > 0 ? 'end' : 'start'}">${escaped(span.depth > 0 ? label : '')}</text>`,
    ].join('\n  ')
  })
  const [run] = spans
  const title = `A run of the quickstart: ${spans.length} spans in ${run.durationMs} ms`
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${left + width + 20} ${height}" role="img" aria-label="${title}" font-family="ui-monospace, monospace" font-size="12">
  <style>text { fill: #1f2328 } .note { fill: #59636e; font-size: 11px }</style>
  <rect width="100%" height="100%" fill="#ffffff"/>
  <text class="note" x="12" y="17">${title}</text>
  ${rows.join('\n  ')}
</svg>
`
}

function labelOf({ durationMs, attributes }) {
  const tokens = attributes['gen_ai.usage.total_tokens']
  return tokens === undefined ? `${durationMs} ms` : `${durationMs} ms, ${tokens} tokens`
}

function escaped(text) {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
}
