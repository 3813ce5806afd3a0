import type { LogStore, RunStatus } from '../../index.js'
import { hasEnded } from '../../run/log/owner.js'
import type { DbosEngine, DbosWorkflow } from './engine.js'
import { stretchOf } from './stretches.js'

/**
 * How long ago the engine must have given a stretch to a process that has not begun it, or has ended it without telling
 * the engine, before that process counts as gone, in ms. By the clocks of the database and of this machine.
 */
const BEGUN_OR_GONE_MS = 60_000

/** Gives work back to the queue whose process is gone, by the claims in the log. */
export class TakeOver {
  readonly #dbos: DbosEngine
  readonly #log: LogStore
  readonly #name: string
  /** Workflows under way in this process. */
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
    const look = (): void => {
      if (looking) return
      looking = true
      // A database that cannot be reached now is asked again.
      this.once()
        .catch(() => undefined)
        .finally(() => (looking = false))
    }
    this.#timer = setInterval(look, everyMs).unref()
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  /** The runs that were given back. */
  async once(): Promise<readonly string[]> {
    const given: string[] = []
    for (const workflow of await this.#candidates()) {
      const stretch = stretchOf(workflow)
      if (stretch === null || this.#here.has(workflow.workflowID)) continue
      const status = (await this.#log.inspect({ kind: 'run', id: stretch.runId }))?.status ?? null
      if (!isGone(workflow, status)) continue
      await this.#giveBack(workflow)
      given.push(stretch.runId)
    }
    return given
  }

  /**
   * What processes of this version have in hand; where this is the latest one, also what is tied to earlier versions:
   * nobody else might be left to do it.
   */
  async #candidates(): Promise<readonly DbosWorkflow[]> {
    const { applicationVersion: own } = this.#dbos
    const known = (await this.#dbos.listApplicationVersions()).map(({ versionName }) => versionName)
    const base = { workflowName: this.#name, loadInput: false, loadOutput: false } as const
    if (known[0] !== own) return this.#dbos.listWorkflows({ ...base, status: ['PENDING'], applicationVersion: [own] })
    const earlier = known.slice(1, MOST_VERSIONS)
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
    // A resumed workflow stays with its version; only one that has been ended can be moved to another.
    await this.#dbos.cancelWorkflow(workflowID)
    await this.#dbos.rewindWorkflow(workflowID, { queueName, applicationVersion })
  }
}

/** Versions further back are not looked at. */
const MOST_VERSIONS = 100

/**
 * Who has a run in hand has claimed it, so that `interrupted` says enough. Of a process that `dbosRuns` has launched its
 * id tells whether it is there.
 */
function isGone(workflow: DbosWorkflow, status: RunStatus | null): boolean {
  const { status: engineStatus, executorId = '', dequeuedAt, updatedAt, createdAt } = workflow
  if (status === 'running') return false
  if (status === 'interrupted' || (engineStatus === 'PENDING' && hasEnded(executorId))) return true
  return Date.now() - (dequeuedAt ?? updatedAt ?? createdAt) > BEGUN_OR_GONE_MS
}
