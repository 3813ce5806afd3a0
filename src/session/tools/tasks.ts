import { objectSchema } from '#util/json.js'
import { defineExtension } from '#core/extension/extension.js'
import { defineTool } from '#core/tools/define-tool.js'
import { ToolResult } from '#core/tools/tool-result.js'
import type { Extension, RunMembers } from '#core/extension/extension.js'
import type { JsonObject, JsonSchema, JsonValue } from '#util/json.js'
import type { ToolSpec } from '#core/tools/tool-spec.js'
import type { TranscriptEntry } from '#contracts/entry.js'
import { invalidArguments, outputMetadata } from './result.js'
import { changedTasks, incompleteTasks, TASKS, readTasks, taskSummary, taskText, writtenTasks } from './task-list.js'
import type { Task, TaskChange, WrittenTask } from './task-list.js'

const STATUS: JsonSchema = { enum: ['pending', 'in_progress', 'completed'] }
const TEXT: JsonSchema = { type: 'string', minLength: 1 }
const FIELDS = {
  content: TEXT,
  status: STATUS,
  activeForm: { ...TEXT, description: 'While it is done: `Running tests`.' },
}

const ITEM = objectSchema(Object.keys(FIELDS), { id: TEXT, ...FIELDS })
const WRITE = objectSchema(['tasks'], { tasks: { type: 'array', items: ITEM } })
const UPDATE = objectSchema(['id'], { id: TEXT, ...FIELDS })
const COMPLETE = objectSchema(['id'], { id: TEXT })

/**
 * An extension with the task list of a conversation: the tools `task_write`, `task_update`, `task_complete` and `task_check`, and a
 * notice that shows the list to the model when it has changed. The list is in the log, and in `tasks` of the snapshot.
 */
export function tasks(): Extension {
  return defineExtension({
    name: TASKS,
    forRun: ({ runId, recorded, record }) => {
      const list = new TaskList(recorded.at(-1), (value) => record(tasksAsJson(value)))
      return taskMembers(runId, list)
    },
  })
}

function tasksAsJson(list: readonly Task[]): JsonObject {
  return { tasks: list.map((task) => ({ ...task })) }
}

/** The task list of one run. It begins with that of the conversation. */
class TaskList {
  readonly #store: (tasks: readonly Task[]) => Promise<void>
  #tasks: readonly Task[]
  #isKnown: boolean

  constructor(recorded: JsonValue | undefined, store: (tasks: readonly Task[]) => Promise<void>) {
    this.#tasks = readTasks(recorded)
    this.#isKnown = recorded !== undefined
    this.#store = store
  }

  get tasks(): readonly Task[] {
    return this.#tasks
  }

  async change(tasks: readonly Task[]): Promise<void> {
    await this.#store(tasks)
    this.#tasks = tasks
    this.#isKnown = true
  }

  /** Takes over the list of the earlier runs of the conversation, once. */
  async begin(transcript: readonly TranscriptEntry[]): Promise<void> {
    if (this.#isKnown) return
    this.#isKnown = true
    const earlier = earlierTasks(transcript)
    if (earlier.length > 0) await this.change(earlier)
  }
}

/** The list after the last call of a task tool. */
function earlierTasks(transcript: readonly TranscriptEntry[]): readonly Task[] {
  for (const entry of transcript.toReversed()) {
    if (entry.role !== 'tool' || entry.isError || !CHANGING.has(entry.name) || typeof entry.content !== 'string')
      continue
    return readTasks(outputMetadata(entry.content))
  }
  return []
}

const CHANGING: ReadonlySet<string> = new Set(['task_write', 'task_update', 'task_complete'])

/** The list that the tools change for a caller. */
type ListOf = (caller: { readonly runId: string }) => TaskList

function taskMembers(runId: string, list: TaskList): RunMembers {
  const ofChildren = new Map<string, TaskList>()
  // A child run that has these tools of its caller begins with the list as it is, and its changes end with it.
  const callerList: ListOf = (caller) => {
    if (caller.runId === runId) return list
    const childList = ofChildren.get(caller.runId) ?? new TaskList(tasksAsJson(list.tasks), () => Promise.resolve())
    ofChildren.set(caller.runId, childList)
    return childList
  }
  return {
    tools: [writeTool(callerList), updateTool(callerList), completeTool(callerList), checkTool(callerList)],
    async notices({ transcript }) {
      await list.begin(transcript)
      return list.tasks.length === 0 ? [] : [{ name: TASKS, text: taskText(list.tasks) }]
    },
  }
}

function writeTool(listOf: ListOf): ToolSpec {
  return defineTool({
    name: 'task_write',
    parameters: WRITE,
    sequential: true,
    annotations: INNER,
    description: 'Replace the task list. Use it for work of several steps; at most one task is in progress.',
    handler: async (args, caller) => {
      const list = listOf(caller)
      const written = (args as unknown as { readonly tasks: readonly WrittenTask[] }).tasks
      if (written.filter(({ status }) => status === 'in_progress').length > 1)
        return invalidArguments('At most one task can be `in_progress`. The list has not changed.')
      await list.change(writtenTasks(written, list.tasks))
      return storedResult(list)
    },
  })
}

function updateTool(listOf: ListOf): ToolSpec {
  return defineTool({
    name: 'task_update',
    parameters: UPDATE,
    sequential: true,
    annotations: INNER,
    description: 'Change the text or the status of one task.',
    handler: (args, caller) => {
      const { id, ...change } = args as unknown as TaskChange & { readonly id: string }
      if (Object.keys(change).length === 0)
        return invalidArguments('Expected at least one of `content`, `status` and `activeForm`.')
      return updateTask(listOf(caller), id, change)
    },
  })
}

function completeTool(listOf: ListOf): ToolSpec {
  return defineTool({
    name: 'task_complete',
    parameters: COMPLETE,
    sequential: true,
    annotations: INNER,
    description: 'Mark one task as completed.',
    handler: (args, caller) =>
      updateTask(listOf(caller), (args as { readonly id: string }).id, { status: 'completed' }),
  })
}

function checkTool(listOf: ListOf): ToolSpec {
  return defineTool({
    name: 'task_check',
    parameters: objectSchema([], {}),
    sequential: true,
    annotations: { ...INNER, readOnly: true },
    description: 'Read the task list and what is left of it.',
    handler: (_args, caller) => {
      const list = listOf(caller)
      const summary = taskSummary(list.tasks)
      const incomplete = incompleteTasks(list.tasks)
      const content = `${taskText(list.tasks)}\n${summary.completed} of ${summary.total} completed.`
      return new ToolResult({ content, metadata: { tasks: list.tasks, summary, incomplete_tasks: incomplete } })
    },
  })
}

/** They change nothing but the list. */
const INNER = { destructive: false, openWorld: false } as const

async function updateTask(list: TaskList, id: string, change: TaskChange): Promise<ToolResult> {
  const next = changedTasks(list.tasks, id, change)
  if (next === null) {
    const known = list.tasks.map((task) => `${task.id} (${task.status})`).join(', ')
    return invalidArguments(
      `There is no task \`${id}\`. ${known === '' ? 'The list is empty.' : `There are: ${known}.`}`,
    )
  }
  await list.change(next)
  return storedResult(list)
}

function storedResult({ tasks: list }: TaskList): ToolResult {
  const { completed, total } = taskSummary(list)
  return new ToolResult({
    content: `The task list is stored: ${completed} of ${total} completed.`,
    metadata: { tasks: list },
  })
}
