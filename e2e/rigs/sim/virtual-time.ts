import type { Random } from '../crash/random.js'

interface Timer {
  readonly id: number
  readonly action: () => void
  /** Null: once. */
  readonly everyMs: number | null
  /** Its next firing is late, because nothing waits for it. */
  isLate: boolean
  atMs: number
  /** Timers of the same time fire in the order in which they were set. */
  order: number
}

/** A place in the order of time. It is stale if its timer was set again. */
interface Moment {
  readonly timer: Timer
  readonly atMs: number
  readonly order: number
}

const FIRST_MS = Date.UTC(2030, 0, 1)
/** Intervals up to this length are polls. While nothing waits for them, they fire as rarely as this, in ms. */
const POLL_MS = 1_000
const LATE_MS = 5_000
/** Something in the life may use real time by mistake: so often it gets the chance, in firings. */
const REAL_TURN = 256
const EPOCH = { Date, performanceNow: performance.now.bind(performance) }

/**
 * The clock, timers and random ids of this process, simulated: time passes only in `run`, from timer to timer, and everything
 * is determined by the numbers of `random`. The code under test needs no clock of its own for that, nor do its dependencies.
 */
export class VirtualTime {
  readonly #random: Random
  readonly #heap: Moment[] = []
  readonly #late = new Set<Timer>()
  readonly #isQuiet: () => boolean
  readonly #timers = new Map<number, Timer>()
  #nowMs = FIRST_MS
  #next = 1

  /** `isQuiet`: no poll would find anything. When that changes, `wake` is to be called. */
  constructor(random: Random, isQuiet: () => boolean = () => false) {
    this.#random = random
    this.#isQuiet = isQuiet
  }

  get nowMs(): number {
    return this.#nowMs - FIRST_MS
  }

  /** Replaces the globals of time and chance, that of garbage among them. Returns a function that puts them back. */
  install(): () => void {
    const { setTimeout, clearTimeout, setInterval, clearInterval } = globalThis
    const { random } = Math
    const set =
      (repeats: boolean) =>
      (action: (...args: unknown[]) => void, ms = 0, ...args: unknown[]): VirtualTimer =>
        this.#add(() => action(...args), ms, repeats)
    const clear = (timer: unknown): void => this.#clear(timer)
    const virtual = { setTimeout: set(false), setInterval: set(true), clearTimeout: clear, clearInterval: clear }
    const { WeakRef } = globalThis
    Object.assign(globalThis, { ...virtual, Date: this.#dateClass(), WeakRef: StrongRef })
    Object.assign(performance, { now: () => this.nowMs })
    Object.assign(globalThis.crypto, { randomUUID: () => this.#uuid() })
    Math.random = this.#random
    return () => {
      Object.assign(globalThis, { setTimeout, clearTimeout, setInterval, clearInterval, Date: EPOCH.Date, WeakRef })
      Object.assign(performance, { now: EPOCH.performanceNow })
      Reflect.deleteProperty(globalThis.crypto, 'randomUUID')
      Math.random = random
    }
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => void this.#add(resolve, ms, false))
  }

  /** Polls that are late fire as they would have. */
  wake(): void {
    for (const timer of this.#late) {
      const { everyMs, atMs } = timer
      timer.isLate = false
      if (everyMs === null || !this.#timers.has(timer.id)) continue
      this.#push(timer, atMs - Math.floor((atMs - this.#nowMs - 1) / everyMs) * everyMs)
    }
    this.#late.clear()
  }

  /** Lets time pass until `work` has settled. Rejects if nothing is left to happen. */
  async run<T>(work: Promise<T>): Promise<T> {
    const ending = { isOver: false }
    const over = (): void => void (ending.isOver = true)
    work.then(over, over)
    for (let firing = 1; ; firing++) {
      // Everything that can happen without time passing: the queue of promises is empty when this one resolves.
      await new Promise<void>((resolve) => process.nextTick(resolve))
      if (firing % REAL_TURN === 0) await new Promise((resolve) => setImmediate(resolve))
      if (ending.isOver) return work
      const timer = this.#pop()
      if (timer === null) throw new Error('Nothing is left to happen, and the life is not over.')
      this.#nowMs = Math.max(this.#nowMs, timer.atMs)
      if (timer.everyMs === null) this.#timers.delete(timer.id)
      else this.#repeat(timer, timer.everyMs)
      timer.action()
    }
  }

  #add(action: () => void, ms: number, repeats: boolean): VirtualTimer {
    const everyMs = repeats ? Math.max(1, ms) : null
    const timer: Timer = { id: this.#next, action, everyMs, isLate: false, atMs: 0, order: 0 }
    this.#timers.set(timer.id, timer)
    this.#push(timer, this.#nowMs + Math.max(1, ms))
    return new VirtualTimer(timer.id)
  }

  #clear(timer: unknown): void {
    if (timer instanceof VirtualTimer) this.#timers.delete(timer.id)
  }

  #repeat(timer: Timer, everyMs: number): void {
    timer.isLate = everyMs <= POLL_MS && this.#isQuiet()
    if (timer.isLate) this.#late.add(timer)
    else this.#late.delete(timer)
    this.#push(timer, this.#nowMs + (timer.isLate ? Math.ceil(LATE_MS / everyMs) : 1) * everyMs)
  }

  #push(timer: Timer, atMs: number): void {
    timer.atMs = atMs
    timer.order = this.#next++
    const moment = { timer, atMs, order: timer.order }
    const heap = this.#heap
    let index = heap.push(moment) - 1
    while (index > 0) {
      const parent = (index - 1) >> 1
      if (!isBefore(moment, heap[parent])) break
      swap(heap, index, parent)
      index = parent
    }
  }

  #pop(): Timer | null {
    for (;;) {
      const heap = this.#heap
      const first = heap[0]
      const last = heap.pop()
      if (first === undefined || last === undefined) return null
      if (heap.length > 0) sink(heap, last)
      const { timer, order } = first
      if (timer.order === order && this.#timers.has(timer.id)) return timer
    }
  }

  #dateClass(): DateConstructor {
    const now = (): number => this.#nowMs
    return class VirtualDate extends EPOCH.Date {
      constructor(...args: ConstructorParameters<DateConstructor> | []) {
        if (args.length === 0) super(now())
        else super(...args)
      }

      static override now(): number {
        return now()
      }
    } as DateConstructor
  }

  #uuid(): string {
    const [a, b, c, d] = [this.#word(), this.#word(), this.#word(), this.#word()]
    return `${a}-${b.slice(0, 4)}-${b.slice(4)}-${c.slice(0, 4)}-${c.slice(4)}${d}`
  }

  #word(): string {
    return Math.floor(this.#random() * 2 ** 32)
      .toString(16)
      .padStart(8, '0')
  }
}

/** What `setTimeout` of Node returns, as far as it is used. */
class VirtualTimer {
  readonly id: number

  constructor(id: number) {
    this.id = id
  }

  ref(): this {
    return this
  }

  unref(): this {
    return this
  }
}

function isBefore(left: Moment | undefined, right: Moment | undefined): boolean {
  if (left === undefined || right === undefined) return right === undefined
  return left.atMs === right.atMs ? left.order < right.order : left.atMs < right.atMs
}

function swap(heap: Moment[], left: number, right: number): void {
  const [a, b] = [heap[left], heap[right]]
  if (a !== undefined && b !== undefined) [heap[left], heap[right]] = [b, a]
}

/** Puts `moment` at the place of the first. */
function sink(heap: Moment[], moment: Moment): void {
  heap[0] = moment
  for (let index = 0; ;) {
    const [left, right] = [2 * index + 1, 2 * index + 2]
    let least = index
    if (left < heap.length && isBefore(heap[left], heap[least])) least = left
    if (right < heap.length && isBefore(heap[right], heap[least])) least = right
    if (least === index) return
    swap(heap, index, least)
    index = least
  }
}

/** When garbage is collected is not determined by a seed: in a life, everything stays. */
class StrongRef<T extends object> {
  readonly #target: T

  constructor(target: T) {
    this.#target = target
  }

  deref(): T {
    return this.#target
  }
}
