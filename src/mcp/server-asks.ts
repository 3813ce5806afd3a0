import type { SourceCall, SourceQuestion, ToolSourceHost } from '../tools/source.js'
import type { JsonObject } from '../util/json.js'
import { pathToFileURL } from 'node:url'
import { basename } from 'node:path'
import { answerResult, readQuestion, readSampling, samplingResult } from './asks.js'
import type { ConnectionSetup, RootsResult, SamplingResult } from './connection.js'
import type { OpenCalls } from './open-calls.js'
import { sampleInRun } from './sample-in-run.js'
import type { ServerSettings } from './server-options.js'

/** How a server's requests to us are answered. */
export function serverAsks(
  settings: ServerSettings,
  hosts: ReadonlySet<ToolSourceHost>,
  calls: OpenCalls,
): ConnectionSetup['asks'] {
  const callNow = (signal: AbortSignal): SourceCall => {
    const { runId = null, callId = null } = calls.only ?? {}
    return { sourceId: settings.id, runId, callId, signal }
  }
  return {
    elicit: settings.elicitation
      ? (params, signal) => elicit(readQuestion(params), { hosts, calls, signal, callNow })
      : null,
    sample:
      settings.sampling === null
        ? null
        : (params, signal) => sample(params, settings, { hosts, calls, call: callNow(signal) }),
    roots: () => ({ roots: (settings.roots ?? rootsOf(hosts)).map(rootOf) }),
  }
}

interface Asking {
  readonly hosts: ReadonlySet<ToolSourceHost>
  readonly calls: OpenCalls
  readonly signal: AbortSignal
  readonly callNow: (signal: AbortSignal) => SourceCall
}

async function elicit(question: SourceQuestion, { hosts, calls, signal, callNow }: Asking): Promise<JsonObject> {
  const live = [...hosts].map((host) => host.elicit).findLast((each) => each !== undefined)
  const answer = live === undefined ? await calls.ask(question, signal) : await live(question, callNow(signal))
  return answerResult(answer, question)
}

async function sample(
  params: JsonObject,
  { sampling }: ServerSettings,
  { hosts, calls, call }: { hosts: ReadonlySet<ToolSourceHost>; calls: OpenCalls; call: SourceCall },
): Promise<SamplingResult> {
  const ask = typeof sampling === 'function' ? sampling : [...hosts].map((host) => host.sample).findLast((each) => each)
  const request = readSampling(params)
  const reply = await (ask === undefined ? sampleInRun(request, calls.only) : ask(request, call))
  if (reply === null) throw new Error('The request was refused.')
  return samplingResult(reply)
}

function rootsOf(hosts: ReadonlySet<ToolSourceHost>): readonly string[] {
  return [...new Set([...hosts].flatMap(({ roots }) => roots))]
}

function rootOf(path: string): RootsResult['roots'][number] {
  return { uri: pathToFileURL(path).href, name: basename(path) }
}
