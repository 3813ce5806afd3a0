import type { CommandLine } from './command-line.js'
import { programName } from './inner-commands.js'
import type { ShellWord } from './word.js'

/** A string in a command that may be a path, and the folder that it is relative to. */
export interface Mention {
  readonly text: string
  readonly folder: string
  readonly word: ShellWord
}

/** The strings in the words of a command line that may name something: whole words, and pieces of them. */
export function mentionedPaths(line: CommandLine, folder: string): readonly Mention[] {
  const folders = lineFolders(line, folder)
  const words = new Set([...line.parts.flatMap(({ words: all }) => all), ...line.files])
  return [...words].flatMap((word) =>
    wordPieces(word).flatMap((text) => folders.map((from) => ({ text, folder: from, word }))),
  )
}

/** `--file=.env`, `-f.env`, `@.env`, `open('.env')`: a word, and the pieces of it that may be names. */
export function wordPieces({ text }: ShellWord): readonly string[] {
  const pieces = text.split(/[\s'"`()[\]{},;=:@<>|&]+/)
  const option = /^-[A-Za-z](.+)$/.exec(text)?.[1]
  return [...new Set([text, ...pieces, ...(option === undefined ? [] : [option])])].filter((piece) => piece !== '')
}

/** The folder in which a line begins, and those that it changes to. */
function lineFolders({ parts }: CommandLine, folder: string): readonly string[] {
  const folders = [folder]
  for (const { words, program } of parts) {
    const name = programName(words[program])
    const target = words.slice(program + 1).find(({ text }) => !text.startsWith('-'))
    if ((name !== 'cd' && name !== 'pushd') || target === undefined || folders.length >= 8) continue
    folders.push(
      target.text.startsWith('/') || target.text.startsWith('~')
        ? target.text
        : `${folders.at(-1) ?? '.'}/${target.text}`,
    )
  }
  return folders
}
