import { withUsage } from '#contracts/run-usage.js'
import type { PendingItem } from '#contracts/result.js'
import type { RunUsage } from '#contracts/run-usage.js'
import type { ContentSource, UserEntry, Unstamped } from '#contracts/entry.js'
import type { JsonValue } from '#util/json.js'
import type { Answer, KeptAnswer } from './answers.js'
import type { StoredChild } from './child-state.js'
import { unanswered } from './batch-call.js'

/** A run that a call left behind in the background when it ended. */
export interface LeftRun {
  /** Tells the runs of one call apart. */
  readonly key: string
  readonly childRunId: string
  readonly agent: string
  /** The beginning of its prompt. */
  readonly task: string
  /** The arguments of the call's handler, as JSON text: it is entered again with them to start the run after a crash. */
  readonly arguments: string
  /** People's answers that the handler had, by key, if any. */
  readonly askedBefore?: Readonly<Record<string, JsonValue>>
}

/** A run in the background whose report has not come yet. */
export interface BackgroundRun extends LeftRun {
  /** The call's id, `/` and the key: the beginning of the ids of its questions. */
  readonly id: string
  readonly callId: string
  readonly toolName: string
  readonly waiting: readonly PendingItem[]
  /** The answers of people since it paused. */
  readonly answers: readonly KeptAnswer[]
  /** Its state when it last waited. */
  readonly state: StoredChild | null
}

/** A message for the model, added to the next request. */
export interface BackgroundReport {
  readonly callId: string
  readonly content: string
  readonly source: ContentSource
}

/** Of a run that has, or had, runs in the background. */
export interface Background {
  readonly runs: readonly BackgroundRun[]
  readonly reports: readonly BackgroundReport[]
}

/** A state as far as this file changes it. */
interface WithBackground {
  background?: Background
  usage: RunUsage
  staleTurns: number
}

/** The ids of the runs in the background. */
export function otherRunIds({ background = NOTHING }: Pick<WithBackground, 'background'>): readonly string[] {
  return background.runs.map(({ childRunId }) => childRunId)
}

/** The event of a run in the background that asks people. */
export function isAskedByOther(event?: { readonly kind: string; readonly background?: unknown }): boolean {
  return event?.kind === 'approval_requested' && event.background !== undefined
}

const NOTHING: Background = { runs: [], reports: [] }

/** The open questions of runs in the background. */
export function askedInBackground({
  background = NOTHING,
}: Pick<WithBackground, 'background'>): readonly PendingItem[] {
  return background.runs.flatMap(waitingOf)
}

/** True if some run in the background can continue without an answer. */
export function worksInBackground({ background = NOTHING }: Pick<WithBackground, 'background'>): boolean {
  return background.runs.some((run) => waitingOf(run).length === 0)
}

function waitingOf({ id: callId, waiting, answers }: BackgroundRun): readonly PendingItem[] {
  return unanswered({ callId, waiting, answers, verdict: null })
}

/** A call has ended and left runs behind. */
export function leaveInBackground(
  state: WithBackground,
  { callId, toolName, background = [] }: { callId: string; toolName: string; background?: readonly LeftRun[] },
): void {
  if (background.length === 0) return
  const { runs, reports } = state.background ?? NOTHING
  const left = background.map((run): BackgroundRun => {
    return { ...run, id: `${callId}/${run.key}`, callId, toolName, waiting: [], answers: [], state: null }
  })
  state.background = { runs: [...runs, ...left], reports }
}

/** A run in the background asks people. */
export function waitInBackground(
  state: WithBackground,
  id: string,
  { items, children }: { readonly items: readonly PendingItem[]; readonly children: readonly StoredChild[] },
): void {
  changeRun(state, id, (run) => ({ ...run, waiting: items, answers: [], state: children[0] ?? null }))
}

/** Gives an answer to the run in the background that asked for it. True if there is one. */
export function answerInBackground(state: WithBackground, answer: Answer): boolean {
  const run = state.background?.runs.find(({ waiting }) => waiting.some(({ callId }) => callId === answer.callId))
  if (run === undefined) return false
  const key = run.waiting.find(({ callId }) => callId === answer.callId)?.key
  const kept: KeptAnswer = key === undefined ? answer : { ...answer, key }
  changeRun(state, run.id, (known) => ({ ...known, answers: [...known.answers, kept] }))
  return true
}

function changeRun(state: WithBackground, id: string, changed: (run: BackgroundRun) => BackgroundRun): void {
  const { runs, reports } = state.background ?? NOTHING
  state.background = { runs: runs.map((run) => (run.id === id ? changed(run) : run)), reports }
}

/** A run in the background has ended: its usage counts, and its report is added to the next request. */
export function reportFromBackground(
  state: WithBackground,
  report: { callId: string; childRunId: string; content: string; source: ContentSource; childUsage: RunUsage },
): void {
  const { callId, childRunId, content, source, childUsage } = report
  const { runs, reports } = state.background ?? NOTHING
  const left = runs.filter((run) => run.childRunId !== childRunId)
  state.background = { runs: left, reports: [...reports, { callId, content, source }] }
  state.usage = withUsage(state.usage, childUsage)
  state.staleTurns = 0
}

/** The reports are in the transcript now. */
export function forgetReports(state: WithBackground): void {
  if (state.background === undefined) return
  if (state.background.runs.length === 0) delete state.background
  else state.background = { runs: state.background.runs, reports: [] }
}

/** The reports of runs in the background as entries, in order. */
export function reportEntries({
  background = NOTHING,
}: Pick<WithBackground, 'background'>): readonly Unstamped<UserEntry>[] {
  return background.reports.map(({ callId, content, source }) => {
    return { role: 'user', content: [{ type: 'text', text: content }], notice: true, callId, source }
  })
}
