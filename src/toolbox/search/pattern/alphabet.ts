import { wordCharacters } from './escape.js'
import { Neighbour } from './neighbour.js'
import type { Program } from './program.js'
import { INVALID, STRAY } from './utf8.js'

/** Characters that a pattern cannot tell apart. */
export interface CharClass {
  /** In which of the program's sets they are. */
  readonly inSet: readonly boolean[]
  readonly neighbour: Neighbour
}

const LAST_BMP = 0xffff

/** Numbers the classes of characters of one pattern, in the order in which the characters are first met. */
export class Alphabet {
  readonly classes: CharClass[] = []
  /** The class of each ASCII character. */
  readonly ascii: Uint16Array
  readonly #program: Program
  readonly #numbers = new Map<string, number>()
  /** Class number and 1, so that 0 is for what was never met. */
  readonly #bmp = new Uint16Array(LAST_BMP + 1)
  readonly #astral = new Map<number, number>()

  constructor(program: Program) {
    this.#program = program
    this.ascii = Uint16Array.from({ length: 0x80 }, (_, codePoint) => this.#add(codePoint))
  }

  /** The class of a character that is not ASCII, or of what is none. */
  classOf(codePoint: number): number {
    if (codePoint <= LAST_BMP) {
      const known = this.#bmp[codePoint] ?? 0
      if (known !== 0) return known - 1
      const added = this.#add(codePoint)
      this.#bmp[codePoint] = added + 1
      return added
    }
    const known = this.#astral.get(codePoint) ?? this.#add(codePoint)
    this.#astral.set(codePoint, known)
    return known
  }

  #add(codePoint: number): number {
    const isValid = codePoint < INVALID
    const inSet = this.#program.sets.map((set) => isValid && set.has(codePoint))
    const neighbour = this.#program.hasAssertions ? neighbourOf(codePoint) : Neighbour.other
    const key = `${neighbour}${inSet.map((member) => (member ? '1' : '0')).join('')}`
    const number = this.#numbers.get(key) ?? this.classes.push({ inSet, neighbour }) - 1
    this.#numbers.set(key, number)
    return number
  }
}

function neighbourOf(codePoint: number): Neighbour {
  if (codePoint === STRAY) return Neighbour.stray
  if (codePoint === INVALID) return Neighbour.invalid
  if (codePoint === 0x0a) return Neighbour.lf
  if (codePoint === 0x0d) return Neighbour.cr
  return wordCharacters.has(codePoint) ? Neighbour.word : Neighbour.other
}
