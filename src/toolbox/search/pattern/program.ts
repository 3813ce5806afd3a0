import type { CharSet } from './char-set.js'
import { PatternError } from './syntax.js'
import type { Assertion, PatternNode } from './syntax.js'

/** One step of a pattern's automaton; numbers are places in the program. */
export type Step =
  | { readonly kind: 'match' }
  | { readonly kind: 'set'; readonly set: number; readonly next: number }
  | { readonly kind: 'assertion'; readonly assertion: Assertion; readonly next: number }
  | { readonly kind: 'fork'; readonly next: readonly number[] }

/** A pattern as a nondeterministic automaton. */
export interface Program {
  readonly steps: readonly Step[]
  readonly start: number
  /** The sets that steps name by their place in this list. */
  readonly sets: readonly CharSet[]
  /** Whether a step looks at the characters around it, so that the one before must be remembered. */
  readonly hasAssertions: boolean
}

/** Beyond this a pattern is refused: the time for a character grows with the number of steps. */
const MAX_STEPS = 10_000

/** @throws PatternError when the pattern, its repetitions written out, is too big. */
export function compileProgram(node: PatternNode): Program {
  const builder = new Builder()
  const start = builder.add(node, builder.push({ kind: 'match' }))
  return { steps: builder.steps, start, sets: builder.sets, hasAssertions: builder.hasAssertions }
}

/** Adds steps from the end of the pattern to its front, so that each knows what follows it. */
class Builder {
  readonly steps: Step[] = []
  readonly sets: CharSet[] = []
  readonly #setNumbers = new Map<CharSet | number, number>()
  hasAssertions = false

  push(step: Step): number {
    if (this.steps.length >= MAX_STEPS) throw new PatternError('the pattern is too big: use smaller repetitions')
    return this.steps.push(step) - 1
  }

  /** Where to begin, so that `node` is matched and then what stands at `next`. */
  add(node: PatternNode, next: number): number {
    switch (node.kind) {
      case 'empty':
        return next
      case 'set':
        return this.push({ kind: 'set', set: this.#setNumber(node.set), next })
      case 'assertion':
        this.hasAssertions = true
        return this.push({ kind: 'assertion', assertion: node.assertion, next })
      case 'sequence':
        return node.parts.reduceRight((place, part) => this.add(part, place), next)
      case 'choice':
        return this.push({ kind: 'fork', next: node.options.map((option) => this.add(option, next)) })
      case 'repeat':
        return this.#addRepeat(node.part, node.min, node.max, next)
    }
  }

  #addRepeat(part: PatternNode, min: number, max: number, next: number): number {
    let place = max === Infinity ? this.#addLoop(part, next) : this.#addOptional(part, max - min, next)
    for (let count = 0; count < min; count++) {
      const before = this.add(part, place)
      // What matches the empty text only adds no step, and need not be added a billion times.
      if (before === place) break
      place = before
    }
    return place
  }

  #addLoop(part: PatternNode, next: number): number {
    const ways: number[] = [next]
    const loop = this.push({ kind: 'fork', next: ways })
    ways.push(this.add(part, loop))
    return loop
  }

  /** `part` up to `count` times; after each one may go on with `next`. */
  #addOptional(part: PatternNode, count: number, next: number): number {
    let place = next
    for (let left = count; left > 0; left--) {
      const taken = this.add(part, place)
      if (taken === place) break
      place = this.push({ kind: 'fork', next: [next, taken] })
    }
    return place
  }

  #setNumber(set: CharSet): number {
    const key = set.only ?? set
    const known = this.#setNumbers.get(key)
    if (known !== undefined) return known
    const number = this.sets.push(set) - 1
    this.#setNumbers.set(key, number)
    return number
  }
}
