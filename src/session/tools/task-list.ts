import type { JsonValue } from '#util/json.js'

/** Name of the extension, under which the list is recorded. */
export const TASKS = 'tasks'

/** A task of a conversation. */
export interface Task {
  readonly id: string
  /** What is to be done, as an instruction: `Run the tests`. */
  readonly content: string
  readonly status: TaskStatus
  /** The same while it is being done: `Running the tests`. */
  readonly activeForm: string
}

export type TaskStatus = 'pending' | 'in_progress' | 'completed'

/** A task as the model writes it. */
export type WrittenTask = Omit<Task, 'id'> & { readonly id?: string }

/** Changes of a task. */
export type TaskChange = Partial<Omit<Task, 'id'>>

/** The numbers of a list. */
export interface TaskSummary {
  readonly total: number
  readonly completed: number
  readonly inProgress: number
  readonly pending: number
  readonly incomplete: number
  readonly hasTasks: boolean
  /** False for an empty list. */
  readonly allCompleted: boolean
}

/** A list with ids: those that are given are kept; a task without one has that of the only earlier task with its text, or one made of its text. */
export function writtenTasks(written: readonly WrittenTask[], before: readonly Task[]): readonly Task[] {
  const writtenIds = new Set(written.flatMap(({ id }) => (id === undefined ? [] : [id])))
  const used = new Set<string>()
  return written.map(({ id, content, status, activeForm }) => {
    const isFree = id !== undefined && !used.has(id)
    const chosen = isFree ? id : freeId(content, before, [writtenIds, used])
    used.add(chosen)
    return { id: chosen, content, status, activeForm }
  })
}

function freeId(content: string, before: readonly Task[], taken: readonly ReadonlySet<string>[]): string {
  const isTaken = (id: string): boolean => taken.some((ids) => ids.has(id))
  const [same, ...others] = before.filter((task) => task.content === content)
  if (same !== undefined && others.length === 0 && !isTaken(same.id)) return same.id
  const words = content
    .toLowerCase()
    .replace(/[^a-z\d]+/g, '_')
    .slice(0, 48)
    .replace(/^_+|_+$/g, '')
  const base = `task_${words}`
  let id = base
  for (let number = 2; isTaken(id); number += 1) id = `${base}_${number}`
  return id
}

/** The list after a change; one task at most is in progress. Null for an unknown id. */
export function changedTasks(tasks: readonly Task[], id: string, change: TaskChange): readonly Task[] | null {
  if (!tasks.some((task) => task.id === id)) return null
  return tasks.map((task) => {
    if (task.id === id) return { ...task, ...change }
    return change.status === 'in_progress' && task.status === 'in_progress' ? { ...task, status: 'pending' } : task
  })
}

export function taskSummary(tasks: readonly Task[]): TaskSummary {
  const countTasks = (status: TaskStatus): number => tasks.filter((task) => task.status === status).length
  const [completed, inProgress, pending] = [countTasks('completed'), countTasks('in_progress'), countTasks('pending')]
  return {
    total: tasks.length,
    completed,
    inProgress,
    pending,
    incomplete: inProgress + pending,
    hasTasks: tasks.length > 0,
    allCompleted: tasks.length > 0 && completed === tasks.length,
  }
}

/** Those in progress first, then the pending ones. */
export function incompleteTasks(tasks: readonly Task[]): readonly Task[] {
  const tasksWithStatus = (status: TaskStatus): readonly Task[] => tasks.filter((task) => task.status === status)
  return [...tasksWithStatus('in_progress'), ...tasksWithStatus('pending')]
}

/** The list as the model reads it. */
export function taskText(tasks: readonly Task[]): string {
  if (tasks.length === 0) return 'There are no tasks.'
  return tasks.map(({ id, status, content }) => `- [${MARKS[status]}] ${content} (${id})`).join('\n')
}

const MARKS: Readonly<Record<TaskStatus, string>> = { pending: ' ', in_progress: '>', completed: 'x' }

/** The list in a recorded value. */
export function readTasks(value: JsonValue | undefined): readonly Task[] {
  const list: unknown = typeof value === 'object' && value !== null && 'tasks' in value ? value['tasks'] : []
  return Array.isArray(list) ? (list as readonly Task[]) : []
}
