import type { HarnessOptions, JsonObject, RunEvent, ToolSpec } from 'thinharness'
import type { SubagentSpec } from 'thinharness/tools'
import type { Reply } from 'thinharness/testing'
import { handing } from './subagents-support.js'
import { harnessOf } from '../../harness/support.js'

/** An agent that works in the background, with these tools. */
export function worker(tools: readonly ToolSpec[] = [], beside: Partial<SubagentSpec> = {}): SubagentSpec {
  return { name: 'worker', description: 'Works.', tools, background: true, ...beside }
}

/** A reply that hands out these tasks. */
export function hand(...tasks: readonly string[]) {
  return { calls: tasks.map((task) => ({ name: 'subagent', arguments: { task, agent: 'worker' } })) }
}

/** A reply that calls these tools. */
export function call(...names: readonly string[]) {
  return { calls: names.map((name) => ({ name })) }
}

export function played(
  plays: Readonly<Record<string, readonly (string | Reply)[]>>,
  options: HarnessOptions,
): { readonly harness: ReturnType<typeof harnessOf>; readonly model: ReturnType<typeof handing> } {
  const model = handing([], plays)
  return { harness: harnessOf({ model, ...options }), model }
}

const REPORT =
  /<harness_notice kind="background_report">\n`(?<agent>[^`]+)` has (?:ended|failed \(`(?<error>[^`]+)`\))\. Task: (?<task>"(?:[^"\\]|\\.)*")\. Run: (?<run>\S+)\.\n\n(?<content>.*)\n<\/harness_notice>/s

/** What the model read of reports, in the order of the transcript. */
export function reportsIn(transcript: readonly { readonly role: string }[]): readonly JsonObject[] {
  return textsIn(transcript).flatMap((text) => {
    const report = REPORT.exec(text)?.groups
    if (report === undefined) return []
    const { agent = '', error, task = '', run = '', content = '' } = report
    const code = error === undefined ? {} : { error_type: error }
    const metadata = { agent, run_id: run, task: JSON.parse(task) as string, ...code }
    return [{ ok: error === undefined, content, metadata }]
  })
}

function textsIn(transcript: readonly { readonly role: string }[]): readonly string[] {
  return transcript
    .filter(({ role }) => role === 'user')
    .flatMap((entry) => ('content' in entry ? (entry.content as readonly { text?: string }[]) : []))
    .map(({ text = '' }) => text)
}

/** Events of the run at the top, in short. */
export function topKinds(events: readonly RunEvent[]): string {
  return events.flatMap((event) => (event.parentRunId === null && event.durable ? [shortly(event)] : [])).join(' ')
}

function shortly(event: RunEvent): string {
  if (event.kind === 'model_request_started') return event.requestKind
  return event.kind
}
