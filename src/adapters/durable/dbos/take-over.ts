import type { LogStore } from '#core/log/log.js'
import type { RunStatus } from '#core/log/digest.js'
import { hasEnded } from '#core/log/owner.js'
import type { DbosEngine, DbosWorkflow } from './engine.js'
import { workflowStretch } from './stretches.js'

/**
 * The time, in ms, after which a process counts as ended that was given a stretch and has not begun it, or has ended it
 * without reporting that to the engine. By the clocks of the database and of this machine.
 */
const BEGUN_OR_GONE_MS = 60_000

/** Puts runs whose process has ended back into the queue, by the claims in the log. */
export class TakeOver {
  readonly #dbos: DbosEngine
  readonly #log: LogStore
  readonly #name: string
  /** Workflows in progress in this process. */
  readonly #here: ReadonlySet<string>
  #timer: NodeJS.Timeout | undefined

  constructor(
    dbos: DbosEngine,
    log: LogStore,
    { name, here }: { readonly name: string; readonly here: ReadonlySet<string> },
  ) {
    this.#dbos = dbos
    this.#log = log
    this.#name = name
    this.#here = here
  }

  start(everyMs: number): void {
    let looking = false
    const lookForRuns = (): void => {
      if (looking) return
      looking = true
      // If the database cannot be reached, the next round tries again.
      this.once()
        .catch(() => undefined)
        .finally(() => (looking = false))
    }
    this.#timer = setInterval(lookForRuns, everyMs).unref()
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  /** The runs that were put back. */
  async once(): Promise<readonly string[]> {
    const runIds: string[] = []
    for (const workflow of await this.#candidates()) {
      const stretch = workflowStretch(workflow)
      if (stretch === null || this.#here.has(workflow.workflowID)) continue
      const status = (await this.#log.inspect({ kind: 'run', id: stretch.runId }))?.status ?? null
      if (!isGone(workflow, status)) continue
      await this.#giveBack(workflow)
      runIds.push(stretch.runId)
    }
    return runIds
  }

  /**
   * The workflows of this version; if it is the latest one, also those of earlier versions, which may have no other
   * process left.
   */
  async #candidates(): Promise<readonly DbosWorkflow[]> {
    const { applicationVersion } = this.#dbos
    const versions = (await this.#dbos.listApplicationVersions()).map(({ versionName }) => versionName)
    const base = { workflowName: this.#name, loadInput: false, loadOutput: false } as const
    if (versions[0] !== applicationVersion)
      return this.#dbos.listWorkflows({ ...base, status: ['PENDING'], applicationVersion: [applicationVersion] })
    const earlier = versions.slice(1, MOST_VERSIONS)
    const inHand = await this.#dbos.listWorkflows({ ...base, status: ['PENDING'] })
    if (earlier.length === 0) return inHand
    return [
      ...inHand,
      ...(await this.#dbos.listWorkflows({ ...base, status: ['ENQUEUED'], applicationVersion: earlier })),
    ]
  }

  async #giveBack({ workflowID, applicationVersion: version }: DbosWorkflow): Promise<void> {
    const { applicationVersion } = this.#dbos
    const queueName = this.#name
    if (version === undefined || version === applicationVersion) {
      await this.#dbos.resumeWorkflow(workflowID, { queueName })
      return
    }
    // A resumed workflow keeps its version; only one that has been ended can be moved to another.
    await this.#dbos.cancelWorkflow(workflowID)
    await this.#dbos.rewindWorkflow(workflowID, { queueName, applicationVersion })
  }
}

/** Earlier versions are ignored. */
const MOST_VERSIONS = 100

/**
 * A process that executes a run has claimed it, so the status `interrupted` is sufficient. The id of a process that
 * `dbosRuns` has launched shows if it has ended.
 */
function isGone(workflow: DbosWorkflow, status: RunStatus | null): boolean {
  const { status: engineStatus, executorId = '', dequeuedAt, updatedAt, createdAt } = workflow
  if (status === 'running') return false
  if (status === 'interrupted' || (engineStatus === 'PENDING' && hasEnded(executorId))) return true
  return Date.now() - (dequeuedAt ?? updatedAt ?? createdAt) > BEGUN_OR_GONE_MS
}
