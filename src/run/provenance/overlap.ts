import { addressesIn, commandsIn, plainForm, shareAddress, wordsOf } from './compared-text.js'
import type { Addresses } from './compared-text.js'

/** Letters and digits that two strings must have in common in a row to count as near: any run of twice as many is found. */
const BLOCK = 12
/** A shorter argument says nothing about its source. */
const SHORTEST = 4

/** A string, prepared to be compared with many samples. */
export interface Fingerprint {
  readonly letters: string
  readonly blocks: ReadonlySet<string>
  readonly addresses: Addresses
  readonly words: string
  readonly vocabulary: ReadonlySet<string>
}

export function fingerprintOf(text: string): Fingerprint {
  const plain = plainForm(text)
  const letters = lettersOf(plain)
  const blocks = new Set<string>()
  for (let at = 0; at + BLOCK <= letters.length; at += BLOCK) blocks.add(letters.slice(at, at + BLOCK))
  const words = wordsOf(plain)
  return { letters, blocks, addresses: addressesIn(plain), words, vocabulary: new Set(words.split(' ')) }
}

/** A string, prepared to be sought in many fingerprints. */
export interface Sample {
  readonly letters: string
  readonly addresses: Addresses
  readonly commands: readonly string[]
}

/** `isScript`: the text is run, so that each of its lines is a command. */
export function sampleOf(text: string, isScript = false): Sample {
  const plain = plainForm(text)
  const commands = [...new Set(commandsIn(plain, isScript))]
  return { letters: lettersOf(plain), addresses: addressesIn(plain), commands }
}

/**
 * Compares a string with another: it is contained in it (`exact`), or a part of it is (`near`): at least 23 letters and digits in a
 * row, a host, the address of a person, or a command. Case, marks, spaces and punctuation do not count.
 */
export function overlap({ letters, addresses, commands }: Sample, source: Fingerprint): 'exact' | 'near' | null {
  if (letters.length < SHORTEST) return null
  if (source.letters.includes(letters)) return 'exact'
  for (let at = 0; at + BLOCK <= letters.length; at++) {
    if (source.blocks.has(letters.slice(at, at + BLOCK))) return 'near'
  }
  if (shareAddress(addresses, source.addresses)) return 'near'
  // Most commands have a word of their own: to look for a whole one takes time with the length of the source.
  const isKnown = (command: string): boolean => command.split(' ').every((word) => source.vocabulary.has(word))
  return commands.some((command) => isKnown(command) && source.words.includes(command)) ? 'near' : null
}

function lettersOf(plain: string): string {
  return plain.replace(/[^\p{L}\p{N}]+/gu, '')
}
