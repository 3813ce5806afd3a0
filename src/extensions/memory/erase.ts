import { HarnessError } from '#contracts/errors.js'
import type { DurableEvent } from '#core/state/events.js'
import type { LogRef } from '#core/log/ref.js'
import type { LogStore } from '#core/log/log.js'
import { isObject, parseJson } from '#util/json.js'
import type { MemoryIndex } from './index-port.js'
import { metadataResource } from './synchroniser.js'

/** What was erased of an owner. */
export interface Erased {
  /** Conversations, the log of the memory included. */
  readonly threads: number
  /** Runs at the top; their child runs are erased with them. */
  readonly runs: number
  /** Files with outputs of tools that were too long for the model. */
  readonly files: number
}

/** How long logs that a process owns are waited for, and how often they are looked at, in ms. An idle conversation is released after 5 s. */
const PATIENCE_MS = 10_000
const LOOK_MS = 100

/** Removes everything of an owner from a log, from the files that its runs saved, and from the index. */
export async function eraseResource(log: LogStore, index: MemoryIndex, resourceId: string): Promise<Erased> {
  const refs = await resourceLogs(log, resourceId)
  let files = 0
  for (const ref of refs) if (ref.kind === 'run') files += await removeFiles(log, ref.id)
  await removeLogs(log, refs)
  await log.scrub?.()
  for (const { kind, id } of refs) await index.drop(`${kind}:${id}`)
  await index.erase(resourceId)
  const runs = refs.filter(({ kind }) => kind === 'run').length
  return { threads: refs.length - runs, runs, files }
}

/** The logs of an owner, and the runs without an owner that continue its conversations. */
async function resourceLogs(log: LogStore, resourceId: string): Promise<readonly LogRef[]> {
  const refs = new Map<string, LogRef>()
  const addLog = (ref: LogRef): unknown => refs.set(`${ref.kind}:${ref.id}`, ref)
  for await (const { threadId } of log.list({ kind: 'thread', resourceId })) addLog({ kind: 'thread', id: threadId })
  for await (const { runId } of log.list({ parentRunId: null, resourceId })) addLog({ kind: 'run', id: runId })
  // Entries that are added during the iteration are visited too.
  for (const ref of refs.values()) {
    for (const { kind, id } of (await log.referrers?.(ref)) ?? []) {
      const run = kind === 'run' ? await log.inspect({ kind, id }) : null
      if (run?.parent === null && metadataResource(run.metadata) === null) addLog({ kind, id })
    }
  }
  return [...refs.values()]
}

async function removeLogs(log: LogStore, refs: readonly LogRef[]): Promise<void> {
  for (const end = Date.now() + PATIENCE_MS; ;) {
    if (refs.length > 0) await log.prune({ only: refs })
    const left: LogRef[] = []
    for (const ref of refs) if ((await log.inspect(ref)) !== null) left.push(ref)
    const [first] = left
    if (first === undefined) return
    await checkIsUnused(log, left, refs)
    if (Date.now() > end)
      throw incompleteError(left, `a process owns ${first.kind} \`${first.id}\`. Close its sessions and try again.`)
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
  }
}

/** Waiting does not help if a run of another owner continues one of these. */
async function checkIsUnused(log: LogStore, left: readonly LogRef[], refs: readonly LogRef[]): Promise<void> {
  const erased = new Set(refs.map(({ kind, id }) => `${kind}:${id}`))
  for (const ref of left) {
    const other = (await log.referrers?.(ref))?.find(({ kind, id }) => !erased.has(`${kind}:${id}`))
    if (other === undefined) continue
    throw incompleteError(left, `${ref.kind} \`${ref.id}\` is continued by ${other.kind} \`${other.id}\` of another owner.`)
  }
}

function incompleteError(left: readonly LogRef[], reason: string): HarnessError {
  return new HarnessError('run_owned', `Logs that could not be erased: ${left.length}. For example, ${reason}`)
}

/** Removes the outputs that a run and its child runs saved. */
async function removeFiles(log: LogStore, runId: string): Promise<number> {
  let removed = 0
  for await (const event of log.read({ kind: 'run', id: runId })) {
    const path = savedHandle(event)
    if (path !== null && (await removeSaved(path))) removed += 1
  }
  for await (const child of log.list({ parentRunId: runId })) removed += await removeFiles(log, child.runId)
  return removed
}

/** The file in which an output was saved. */
function savedHandle(event: DurableEvent): string | null {
  if (event.kind !== 'tool_call_completed') return null
  const parsed = parseJson(event.output)
  if (!parsed.ok || !isObject(parsed.value)) return null
  const { metadata } = parsed.value
  const path = isObject(metadata) ? metadata['saved_to'] : undefined
  return typeof path === 'string' ? path : null
}

async function removeSaved(path: string): Promise<boolean> {
  const { removeSavedOutput } = await import('#toolbox/workspace/spill.js')
  return removeSavedOutput(path)
}
