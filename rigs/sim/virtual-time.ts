import type { Random } from '../crash/random.js'

interface Timer {
  readonly id: number
  readonly action: () => void
  /** Null: once. */
  readonly everyMs: number | null
  atMs: number
  /** Timers of the same time fire in the order in which they were set. */
  order: number
}

const FIRST_MS = Date.UTC(2030, 0, 1)
const EPOCH = { Date, performanceNow: performance.now.bind(performance) }

/**
 * The clock, timers and random ids of this process, simulated: time passes only in `run`, from timer to timer, and everything
 * is determined by the numbers of `random`. The code under test needs no clock of its own for that, nor do its dependencies.
 */
export class VirtualTime {
  readonly #random: Random
  readonly #heap: Timer[] = []
  readonly #timers = new Map<number, Timer>()
  #nowMs = FIRST_MS
  #next = 1

  constructor(random: Random) {
    this.#random = random
  }

  get nowMs(): number {
    return this.#nowMs - FIRST_MS
  }

  /** Replaces the globals of time and chance. Returns a function that puts them back. */
  install(): () => void {
    const { setTimeout, clearTimeout, setInterval, clearInterval } = globalThis
    const { random } = Math
    const set =
      (repeats: boolean) =>
      (action: (...args: unknown[]) => void, ms = 0, ...args: unknown[]): VirtualTimer =>
        this.#add(() => action(...args), ms, repeats)
    const clear = (timer: unknown): void => this.#clear(timer)
    const virtual = { setTimeout: set(false), setInterval: set(true), clearTimeout: clear, clearInterval: clear }
    Object.assign(globalThis, { ...virtual, Date: this.#dateClass() })
    Object.assign(performance, { now: () => this.nowMs })
    Object.assign(globalThis.crypto, { randomUUID: () => this.#uuid() })
    Math.random = this.#random
    return () => {
      Object.assign(globalThis, { setTimeout, clearTimeout, setInterval, clearInterval, Date: EPOCH.Date })
      Object.assign(performance, { now: EPOCH.performanceNow })
      Reflect.deleteProperty(globalThis.crypto, 'randomUUID')
      Math.random = random
    }
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => void this.#add(resolve, ms, false))
  }

  /** Lets time pass until `work` has settled. Rejects if nothing is left to happen. */
  async run<T>(work: Promise<T>): Promise<T> {
    const ending = { isOver: false }
    const over = (): void => void (ending.isOver = true)
    work.then(over, over)
    for (;;) {
      // Everything that can happen without time passing.
      await new Promise((resolve) => setImmediate(resolve))
      if (ending.isOver) return work
      const timer = this.#pop()
      if (timer === null) throw new Error('Nothing is left to happen, and the life is not over.')
      this.#nowMs = Math.max(this.#nowMs, timer.atMs)
      if (timer.everyMs === null) this.#timers.delete(timer.id)
      else this.#push(timer, timer.everyMs)
      timer.action()
    }
  }

  #add(action: () => void, ms: number, repeats: boolean): VirtualTimer {
    const everyMs = repeats ? Math.max(1, ms) : null
    const timer: Timer = { id: this.#next, action, everyMs, atMs: 0, order: 0 }
    this.#timers.set(timer.id, timer)
    this.#push(timer, Math.max(1, ms))
    return new VirtualTimer(timer.id)
  }

  #clear(timer: unknown): void {
    if (timer instanceof VirtualTimer) this.#timers.delete(timer.id)
  }

  #push(timer: Timer, ms: number): void {
    timer.atMs = this.#nowMs + ms
    timer.order = this.#next++
    const heap = this.#heap
    let index = heap.push(timer) - 1
    while (index > 0) {
      const parent = (index - 1) >> 1
      if (!isBefore(timer, heap[parent])) break
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
      if (this.#timers.has(first.id)) return first
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
    const digits = Array.from({ length: 32 }, () => Math.floor(this.#random() * 16).toString(16)).join('')
    return digits.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
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

function isBefore(left: Timer | undefined, right: Timer | undefined): boolean {
  if (left === undefined || right === undefined) return right === undefined
  return left.atMs === right.atMs ? left.order < right.order : left.atMs < right.atMs
}

function swap(heap: Timer[], left: number, right: number): void {
  const [a, b] = [heap[left], heap[right]]
  if (a !== undefined && b !== undefined) [heap[left], heap[right]] = [b, a]
}

/** Puts `timer` at the place of the first. */
function sink(heap: Timer[], timer: Timer): void {
  heap[0] = timer
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
