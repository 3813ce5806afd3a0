import { fixedWord } from './word.js'
import type { ShellPart } from './command-line.js'
import type { ShellWord } from './word.js'

/** The forms of a command for rules that ask or deny: without assignments, and with the bare name of its program. */
export function plainForms({ words, program }: ShellPart): readonly (readonly ShellWord[])[] {
  const [name, ...args] = words.slice(program)
  if (name === undefined) return [words]
  const written = [name, ...args]
  const forms = program === 0 ? [written] : [words, written]
  if (!name.isFixed) return forms
  const bare = name.text.slice(name.text.lastIndexOf('/') + 1)
  const names = new Set([bare, bare.toLowerCase()])
  names.delete(name.text)
  return [...forms, ...[...names].map((each) => [fixedWord(each), ...args])]
}
