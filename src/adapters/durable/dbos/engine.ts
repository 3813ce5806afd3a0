import type { JsonObject } from '#util/json.js'
import type { StretchEnding, StretchWork } from '../stretch.js'

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
