import { expandedHome, fixedWord } from './word.js'
import type { ShellPart } from './command-line.js'
import type { ShellWord } from './word.js'

/** The forms of a command for rules that ask or deny: without assignments, with the bare name of its program, without `~`. */
export function plainForms({ words, program }: ShellPart): readonly (readonly ShellWord[])[] {
  const command = words.slice(program)
  const own = program > 0 && command.length > 0 ? [words, command] : [words]
  const forms = words.some(({ isInHome }) => isInHome) ? [...own, command.map(expandedHome)] : own
  const [name, ...args] = command
  if (name?.isFixed !== true) return forms
  const bare = name.text.slice(name.text.lastIndexOf('/') + 1)
  const names = new Set([bare, bare.toLowerCase()])
  names.delete(name.text)
  return [...forms, ...[...names].map((each) => [fixedWord(each), ...args])]
}
