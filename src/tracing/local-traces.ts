import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import type { Tracing } from '../index.js'
import { LocalSpans } from './local-spans.js'
import { checkTraceOptions, refuse } from './options.js'
import type { TraceOptions } from './options.js'
import { RunSpanMaker } from './run-spans.js'
import { TraceWriter } from './trace-writer.js'

/** Content is captured unless `captureContent` says otherwise: who asks for a local trace wants to read it. */
export interface LocalTracesOptions extends TraceOptions {
  /** Folder of all traces. Default `~/.thinharness/traces`. Below it each workspace has a folder of its own. */
  readonly dir?: string
  /** Bytes that the traces of one workspace may take; the oldest are deleted first. Default 256 MiB, least 1 MiB. */
  readonly maxBytes?: number
}

/**
 * Traces runs into files of this machine, to be read with `jq` or turned into OpenTelemetry's JSON with `otlpJson`: one
 * JSONL file a trace, one span (`TraceRecord`) a line, children before their parents. Files can be read by their owner
 * alone, and are written behind the run's back every 200 ms, so that a trace never makes a run wait: a process that is
 * killed loses what it had not written yet. Traces hold what was said, unless told otherwise: treat them as you treat the
 * data that runs work on.
 *
 * Throws `invalid_options`.
 */
export function localTraces(options: LocalTracesOptions = {}): Tracing {
  const settings = checkTraceOptions(options, { what: 'localTraces', own: ['dir', 'maxBytes'], captured: true })
  const { dir = join(homedir(), '.thinharness', 'traces'), maxBytes = 256 * MIB } = options
  if (typeof dir !== 'string' || dir === '') refuse('Expected `dir` of `localTraces` to be a path.')
  if (!Number.isInteger(maxBytes) || maxBytes < MIB) {
    refuse(`Expected \`maxBytes\` of \`localTraces\` to be a whole number from ${MIB} up, got \`${String(maxBytes)}\`.`)
  }
  const writer = new TraceWriter(maxBytes)
  const sink = new LocalSpans(resolve(dir), (folder, record) => writer.write(folder, record))
  const maker = new RunSpanMaker({ sink, ...settings })
  return {
    startRun: (run) => maker.startRun(run),
    flush: () => writer.flush(),
  }
}

const MIB = 1024 * 1024
