import type { StretchEnding, StretchWork } from '../perform-stretch.js'
import type { JsonObject } from '#util/json.js'

/** The methods of the class `DBOS` of the package `@dbos-inc/dbos-sdk` that are used here. */
export interface DbosEngine {
  readonly applicationVersion: string
  readonly workflowID: string | undefined
  readonly stepStatus: { readonly cancelSignal: AbortSignal } | undefined
  isInitialized(): boolean
  setConfig(config: DbosConfig): void
  launch(): Promise<void>
  shutdown(options: { workflowCompletionTimeoutMS?: number }): Promise<void>
  registerLifecycleCallback(callback: { initialize(): Promise<void>; destroy(): Promise<void> }): void
  registerWorkflow(
    carryOut: (work: StretchWork, metadata: JsonObject) => Promise<StretchEnding>,
    config: { name: string },
  ): unknown
  registerQueue(name: string, options: DbosQueueOptions): Promise<unknown>
  runStep(work: () => Promise<StretchEnding>, config: { name: string }): Promise<StretchEnding>
  enqueueWorkflowWithOptions(options: DbosEnqueueOptions, work: StretchWork, metadata: JsonObject): Promise<unknown>
  getResult(workflowId: string, options: { pollingIntervalMs: number }): Promise<unknown>
  getWorkflowStatus(workflowId: string): Promise<DbosWorkflow | null>
  listWorkflows(query: DbosQuery): Promise<readonly DbosWorkflow[]>
  cancelWorkflow(workflowId: string): Promise<void>
  resumeWorkflow(workflowId: string, options: { queueName: string }): Promise<unknown>
  rewindWorkflow(workflowId: string, options: { queueName: string; applicationVersion: string }): Promise<unknown>
  listApplicationVersions(): Promise<readonly { readonly versionName: string }[]>
}

export interface DbosConfig {
  name: string
  systemDatabaseUrl: string
  executorID: string
  applicationVersion: string
  listenQueues: string[]
  logLevel: string
}

export interface DbosQueueOptions {
  globalConcurrency?: number
  workerConcurrency?: number
  rateLimit?: { limitPerPeriod: number; periodSec: number }
  minPollingIntervalMs?: number
}

export interface DbosEnqueueOptions {
  workflowName: string
  queueName: string
  workflowID: string
  workflowIDReusePolicy: 'reject'
  priority?: number
  attributes: Record<string, unknown>
}

export interface DbosQuery {
  workflowName: string
  status?: ('PENDING' | 'ENQUEUED')[]
  applicationVersion?: string[]
  attributes?: Record<string, unknown>
  loadInput: false
  loadOutput: false
}

export interface DbosWorkflow {
  readonly workflowID: string
  readonly status: string
  readonly createdAt: number
  readonly updatedAt?: number
  readonly dequeuedAt?: number
  readonly applicationVersion?: string
  readonly executorId?: string
}

/** True if the workflow has not ended. */
export function isUnderWay({ status }: DbosWorkflow): boolean {
  return status === 'PENDING' || status === 'ENQUEUED' || status === 'DELAYED'
}

/** True if a workflow was rejected because its id exists. */
export function isIdInUse(error: unknown): boolean {
  return error instanceof Error && 'dbosErrorCode' in error && error.dbosErrorCode === WORKFLOW_ID_IN_USE
}

const WORKFLOW_ID_IN_USE = 36

/** A workflow of the engine: one stretch of one run. */
export interface EngineStretch {
  readonly workflowId: string
  readonly runId: string
  /** Number of the event after which it begins; 0 for the first. */
  readonly after: number
  readonly isUnderWay: boolean
}

/** Run ids have no `/`. `attempt` counts from 1: the next one follows a refused one. */
export function stretchWorkflowId(runId: string, after: number, attempt: number): string {
  return `${runId}/${after}.${attempt}`
}

/** The stretch of a workflow; null for another id. */
export function workflowStretch(workflow: DbosWorkflow): EngineStretch | null {
  const [, runId, after] = /^([^/]+)\/(\d+)\.\d+$/.exec(workflow.workflowID) ?? []
  if (runId === undefined) return null
  return { workflowId: workflow.workflowID, runId, after: Number(after), isUnderWay: isUnderWay(workflow) }
}

/** The stretches of a run, in order. */
export async function listStretches(dbos: DbosEngine, name: string, runId: string): Promise<readonly EngineStretch[]> {
  const query = { workflowName: name, attributes: runAttributes(runId), loadInput: false, loadOutput: false } as const
  const workflows = [...(await dbos.listWorkflows(query))].sort((one, other) => one.createdAt - other.createdAt)
  return workflows.map(workflowStretch).filter((stretch) => stretch !== null)
}

/** The attributes by which the stretches of a run are found: the engine has an index of them. */
export function runAttributes(runId: string): Record<string, unknown> {
  return { thinharnessRun: runId }
}
