import { readFileSync, writeFileSync } from 'node:fs'
import { otlpJson } from 'thinharness/tracing'
import type { TraceRecord } from 'thinharness/tracing'

const [file = ''] = process.argv.slice(2)
const lines = readFileSync(file, 'utf8').trimEnd().split('\n')
const records = lines.map((line) => JSON.parse(line) as TraceRecord)

writeFileSync('trace.json', JSON.stringify(otlpJson(records)))
