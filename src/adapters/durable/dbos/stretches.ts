import { isUnderWay } from './engine.js'
import type { DbosEngine, DbosWorkflow } from './engine.js'

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
