import { Alphabet } from './alphabet.js'
import type { CharClass } from './alphabet.js'
import { beforeNext, holds, Neighbour } from './neighbour.js'
import type { Program, Step } from './program.js'
import { decodeAt } from './utf8.js'

/** Where a search stopped because it had used its share of time: give it back to `find` to go on. */
export interface Paused {
  readonly at: number
  readonly state: State
}

/** What is known at a place in a text. */
interface State {
  /** Steps of the program to go on from, ascending, those behind forks and assertions not yet looked up. */
  readonly steps: readonly number[]
  readonly before: Neighbour
}

export const NOT_FOUND = -1

/** What a transition can be beside a row of the table, of which the first begins behind these. */
const UNKNOWN = 0
const MATCH = 1
/** Transitions kept, 4 bytes each; when there are more, all are forgotten and found anew. */
const MAX_TRANSITIONS = 1 << 20
/** Steps looked at in building states before `find` pauses: a few milliseconds of work. */
const WORK_SHARE = 200_000

/**
 * Runs a pattern over bytes in time proportional to their number, whatever the pattern: the states of its automaton are
 * made when they are first needed and kept while there is room.
 */
export class Matcher {
  readonly #program: Program
  readonly #alphabet: Alphabet
  readonly #states: State[] = []
  /** Where the row of a state begins in the table, by the state's text. */
  readonly #rows = new Map<string, number>()
  /** Whether the end of the text completes a match, by row. */
  readonly #ends = new Map<number, boolean>()
  readonly #seen: Uint32Array
  #seenMark = 0
  #startRow = 0
  /** A row has a column for each class of characters: where such a character leads. */
  #columns = 0
  #table = new Int32Array(0)
  #work = 0

  constructor(program: Program) {
    this.#program = program
    this.#alphabet = new Alphabet(program)
    this.#seen = new Uint32Array(program.steps.length)
    this.#forget()
  }

  /**
   * The first place in `bytes`, from `from` to `to`, at which it is certain that a match has ended: at the latest the
   * character behind it, or `to`. `NOT_FOUND` when there is no match.
   */
  find(bytes: Uint8Array, from: number, to: number, paused?: Paused): number | Paused {
    const { ascii } = this.#alphabet
    let row = paused === undefined ? this.#startRow : this.#rowOf(paused.state)
    let at = paused?.at ?? from
    let table = this.#table
    this.#work = 0
    while (at < to) {
      const byte = bytes[at] ?? 0
      let width = 1
      let charClass = 0
      let next = UNKNOWN
      if (byte < 0x80) {
        charClass = ascii[byte] ?? 0
        next = table[row + charClass] ?? UNKNOWN
      } else {
        const decoded = decodeAt(bytes, at, to)
        width = decoded & 7
        charClass = this.#alphabet.classOf(decoded >>> 3)
        // A class that was just met may lie beyond the row.
        if (charClass < this.#columns) next = table[row + charClass] ?? UNKNOWN
      }
      if (next <= MATCH) {
        if (next === UNKNOWN) next = this.#transition(row, charClass)
        if (next === MATCH) return at
        if (this.#work > WORK_SHARE) return { at: at + width, state: this.#stateAt(next) }
        table = this.#table
      }
      at += width
      row = next
    }
    return this.#matchesAtEnd(row) ? to : NOT_FOUND
  }

  #matchesAtEnd(row: number): boolean {
    const known = this.#ends.get(row)
    if (known !== undefined) return known
    const matches = this.#reach(this.#stateAt(row), Neighbour.edge) === MATCH
    this.#ends.set(row, matches)
    return matches
  }

  #transition(row: number, charClass: number): number {
    const next = this.#stepOver(this.#stateAt(row), this.#classAt(charClass))
    const isFull = charClass >= this.#columns || this.#states.length * this.#columns >= MAX_TRANSITIONS
    if (isFull) this.#forget()
    const nextRow = next === MATCH ? MATCH : this.#rowOf(next)
    if (!isFull) this.#table[row + charClass] = nextRow
    return nextRow
  }

  #stateAt(row: number): State {
    const state = this.#states[row / this.#columns - 1]
    if (state === undefined) throw new RangeError(`There is no row ${row}.`)
    return state
  }

  #classAt(number: number): CharClass {
    const found = this.#alphabet.classes[number]
    if (found === undefined) throw new RangeError(`There is no class ${number}.`)
    return found
  }

  #rowOf(state: State): number {
    const key = `${state.before}:${state.steps.join()}`
    const known = this.#rows.get(key)
    if (known !== undefined) return known
    const row = this.#states.push(state) * this.#columns
    this.#rows.set(key, row)
    if (row + this.#columns > this.#table.length) {
      const longer = new Int32Array(this.#table.length * 2)
      longer.set(this.#table)
      this.#table = longer
    }
    return row
  }

  /** Forgets all states, and makes room for all classes known by now and as many more. */
  #forget(): void {
    this.#states.length = 0
    this.#rows.clear()
    this.#ends.clear()
    this.#columns = this.#alphabet.classes.length * 2
    this.#table = new Int32Array(this.#columns * 16)
    this.#startRow = this.#rowOf({ steps: [this.#program.start], before: Neighbour.edge })
  }

  /** Where `charClass` leads from `state`. */
  #stepOver(state: State, charClass: CharClass): State | typeof MATCH {
    const reached = this.#reach(state, charClass.neighbour)
    if (reached === MATCH) return MATCH
    // A match may begin at any character.
    const next = new Set([this.#program.start])
    for (const step of reached) if (step.kind === 'set' && charClass.inSet[step.set] === true) next.add(step.next)
    const before = this.#program.hasAssertions ? beforeNext(state.before, charClass.neighbour) : Neighbour.edge
    return { steps: [...next].sort((left, right) => left - right), before }
  }

  /** All steps that take a character and can be reached without taking one. */
  #reach(state: State, after: Neighbour): Step[] | typeof MATCH {
    const mark = this.#nextMark()
    const reached: Step[] = []
    const open = [...state.steps]
    for (let place = open.pop(); place !== undefined; place = open.pop()) {
      if (this.#seen[place] === mark) continue
      this.#seen[place] = mark
      this.#work++
      const step = this.#program.steps[place]
      if (step?.kind === 'match') return MATCH
      if (step?.kind === 'fork') open.push(...step.next)
      if (step?.kind === 'assertion' && holds(step.assertion, state.before, after)) open.push(step.next)
      if (step?.kind === 'set') reached.push(step)
    }
    return reached
  }

  #nextMark(): number {
    if (this.#seenMark === 0xffff_ffff) {
      this.#seen.fill(0)
      this.#seenMark = 0
    }
    return ++this.#seenMark
  }
}
