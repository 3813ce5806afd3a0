import type { CallNode, Mark, Pause, RunNode, TurnNode } from '../../reading/nodes.js'

/** A row of either reading. Its key is the same in both, so that the place is kept when the reading changes. */
export type Row = RowBase &
  (
    | { readonly kind: 'run'; readonly isBackground: boolean }
    | { readonly kind: 'prompt' }
    | { readonly kind: 'turn'; readonly turn: TurnNode }
    | { readonly kind: 'call'; readonly call: CallNode }
    | { readonly kind: 'mark'; readonly mark: Mark }
    | { readonly kind: 'pause'; readonly pause: Pause }
  )

interface RowBase {
  readonly key: string
  readonly run: RunNode
  /** Levels above it, from 0. */
  readonly depth: number
  /** Its own event. */
  readonly seq: number
  /** Whether it can be folded, and is. */
  readonly fold: 'open' | 'folded' | null
  readonly isProblem: boolean
}

export interface RowSource {
  /** Child runs that a call started. */
  readonly childrenOf: (runId: string, callId: string) => readonly RunNode[]
  /** Rows whose fold is not the usual one: all is open but child runs. */
  readonly turned: ReadonlySet<string>
}

export const keys = {
  run: (runId: string) => `${runId}/run`,
  prompt: (runId: string) => `${runId}/prompt`,
  turn: (turn: Pick<TurnNode, 'runId' | 'index'>) => `${turn.runId}/turn/${turn.index}`,
  call: (call: Pick<CallNode, 'runId' | 'callId'>) => `${call.runId}/call/${call.callId}`,
  mark: (runId: string, seq: number) => `${runId}/mark/${seq}`,
  pause: (runId: string, seq: number) => `${runId}/pause/${seq}`,
}

/** The rows of runs that stand one after the other; several have a row each above their own. */
export function rowsOf(runs: readonly RunNode[], source: RowSource): Row[] {
  const rows: Row[] = []
  for (const run of runs) {
    if (runs.length > 1) addRun(rows, run, { source, depth: 0, isBackground: false, isOpen: true })
    else addInside(rows, run, 0, source)
  }
  return rows
}

interface RunPlace {
  readonly source: RowSource
  readonly depth: number
  readonly isBackground: boolean
  readonly isOpen: boolean
}

function addRun(rows: Row[], run: RunNode, { source, depth, isBackground, isOpen }: RunPlace): void {
  const key = keys.run(run.runId)
  const isShown = isOpen !== source.turned.has(key)
  const fold = isShown ? 'open' : 'folded'
  const isProblem = run.state === 'failed'
  rows.push({ kind: 'run', key, run, depth, seq: run.promptSeq, fold, isProblem, isBackground })
  if (isShown) addInside(rows, run, depth + 1, source)
}

function addInside(rows: Row[], run: RunNode, depth: number, source: RowSource): void {
  const base = { run, depth, fold: null, isProblem: false } as const
  rows.push({ ...base, kind: 'prompt', key: keys.prompt(run.runId), seq: run.promptSeq })
  /** Marks of the run itself and pauses, by the event after which they stand. */
  const between: Row[] = [
    ...run.marks.map((mark): Row => markRow(base, mark)),
    ...run.pauses.map((pause): Row => {
      return { ...base, kind: 'pause', key: keys.pause(run.runId, pause.seq), seq: pause.seq, pause }
    }),
  ].sort((left, right) => left.seq - right.seq)
  let next = 0
  const addUntil = (seq: number) => {
    for (let row = between[next]; row !== undefined && row.seq < seq; row = between[next]) {
      rows.push(row)
      next += 1
    }
  }
  for (const turn of run.turns) {
    addUntil(turn.seq)
    addTurn(rows, run, turn, { depth, source })
  }
  addUntil(Infinity)
}

function addTurn(rows: Row[], run: RunNode, turn: TurnNode, at: { depth: number; source: RowSource }): void {
  const { depth, source } = at
  const key = keys.turn(turn)
  const hasMore = turn.calls.length + turn.marks.length > 0
  const isFolded = source.turned.has(key)
  const fold = hasMore ? (isFolded ? 'folded' : 'open') : null
  rows.push({ kind: 'turn', key, run, depth, seq: turn.seq, fold, isProblem: turn.blocked !== null, turn })
  if (isFolded) return
  const base = { run, depth: depth + 1, fold: null, isProblem: false } as const
  const marks = turn.marks.map((mark) => ({ seq: mark.seq, add: () => rows.push(markRow(base, mark)) }))
  // A call that is the answer of the run is no step: its turn shows it.
  const isStep = ({ state }: CallNode) => state !== 'requested' || turn.resolution !== 'final'
  const calls = turn.calls.filter(isStep).map((call) => ({
    seq: call.starts[0] ?? turn.replySeq ?? 0,
    add: () => addCall(rows, run, call, { depth: depth + 1, source }),
  }))
  for (const { add } of [...marks, ...calls].sort((left, right) => left.seq - right.seq)) add()
}

function addCall(rows: Row[], run: RunNode, call: CallNode, at: { depth: number; source: RowSource }): void {
  const { depth, source } = at
  const key = keys.call(call)
  const children = source.childrenOf(run.runId, call.callId)
  const isFolded = source.turned.has(key)
  const fold = children.length + call.marks.length > 0 ? (isFolded ? 'folded' : 'open') : null
  const isProblem = call.state === 'failed' || call.interrupted !== null
  const seq = call.starts[0] ?? call.endSeq ?? run.turns[call.turn - 1]?.replySeq ?? 0
  rows.push({ kind: 'call', key, run, depth, seq, fold, isProblem, call })
  if (isFolded) return
  const base = { run, depth: depth + 1, fold: null, isProblem: false } as const
  for (const mark of call.marks) rows.push(markRow(base, mark))
  const left = new Set(call.background.map(({ runId }) => runId))
  for (const child of children)
    addRun(rows, child, { source, depth: depth + 1, isBackground: left.has(child.runId), isOpen: false })
}

function markRow(base: Pick<RowBase, 'run' | 'depth' | 'fold'>, mark: Mark): Row {
  return {
    ...base,
    kind: 'mark',
    key: keys.mark(base.run.runId, mark.seq),
    seq: mark.seq,
    isProblem: mark.isProblem,
    mark,
  }
}

/** The row that shows an event of a run, and the rows around it that must be open. */
export function rowOf(run: RunNode, seq: number): { readonly key: string; readonly around: readonly string[] } {
  const pause = run.pauses.find((each) => each.seq === seq)
  if (pause !== undefined) return { key: keys.pause(run.runId, seq), around: [] }
  if (run.marks.some((mark) => mark.seq === seq)) return { key: keys.mark(run.runId, seq), around: [] }
  const turn = run.turns.findLast((each) => each.seq <= seq)
  if (turn === undefined) return { key: keys.prompt(run.runId), around: [] }
  if (turn.marks.some((mark) => mark.seq === seq)) return { key: keys.mark(run.runId, seq), around: [keys.turn(turn)] }
  for (const call of run.calls.values()) {
    const around = [keys.turn({ runId: run.runId, index: call.turn })]
    if (call.starts.includes(seq) || call.endSeq === seq) return { key: keys.call(call), around }
    if (call.marks.some((mark) => mark.seq === seq))
      return { key: keys.mark(run.runId, seq), around: [...around, keys.call(call)] }
  }
  return { key: keys.turn(turn), around: [] }
}
