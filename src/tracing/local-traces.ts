import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { parse } from '../contracts/parse.js'
import type { Tracing } from '../index.js'
import { filledString, integer, partial } from '../util/shape.js'
import { LocalSpans } from './local-spans.js'
import { TRACE_OPTIONS, traceSettings } from './options.js'
import type { TraceOptions } from './options.js'
import { RunSpanMaker } from './run-spans.js'
import { TraceWriter } from './trace-writer.js'

const MIB = 1024 * 1024

/** Content is captured unless `captureContent` says otherwise: local traces are there to be read. */
export interface LocalTracesOptions extends TraceOptions {
  /** Folder of all traces. Default `~/.thinharness/traces`. Below it each workspace has a folder of its own. */
  readonly dir?: string
  /** Bytes that the traces of one workspace may take; the oldest are deleted first. Default 256 MiB, least 1 MiB. */
  readonly maxBytes?: number
}

const OPTIONS = partial<LocalTracesOptions>({ ...TRACE_OPTIONS, dir: filledString, maxBytes: integer(MIB) })

/**
 * Traces runs into files of this machine, to be read with `jq` or turned into OpenTelemetry's JSON with `otlpJson`: one
 * JSONL file a trace, one span (`TraceRecord`) a line, children before their parents. Files can be read by their owner
 * alone, and are written asynchronously every 200 ms, so that a trace never makes a run wait: a process that is
 * killed loses what it had not written yet. Traces contain messages unless `captureContent` is false: treat them like the
 * data that runs work on.
 *
 * Throws `invalid_options`.
 */
export function localTraces(options: LocalTracesOptions = {}): Tracing {
  const given = parse(OPTIONS, options, '`localTraces`')
  const { dir = join(homedir(), '.thinharness', 'traces'), maxBytes = 256 * MIB } = given
  const writer = new TraceWriter(maxBytes)
  const sink = new LocalSpans(resolve(dir), (folder, record) => writer.write(folder, record))
  const maker = new RunSpanMaker({ sink, ...traceSettings(given, true) })
  return {
    startRun: (run) => maker.startRun(run),
    flush: () => writer.flush(),
  }
}
