import { didYouMean } from '../../../util/suggest.js'
import { invalidInput } from '../../workspace/failure.js'
import { segmentPattern } from '../../../util/glob/segment.js'
import type { FileType } from '../engine.js'

/**
 * The file type with this name.
 * @param list The output of `rg --type-list`: `md: *.markdown, *.md, …` in each line.
 * @throws FileFailure `InvalidInput`.
 */
export function fileTypeIn(list: string, name: string): FileType {
  const types = new Map(
    list.split('\n').map((line) => {
      const [key = '', globs = ''] = line.split(': ')
      return [key, globs.split(', ')]
    }),
  )
  const globs = types.get(name)
  if (globs === undefined || name === '') {
    const hint = didYouMean(name.slice(0, 40), [...types.keys()])
    const problem = `\`${name.slice(0, 40)}\` is not a file type: expected a name such as md, txt, csv, json or py.${hint}`
    throw invalidInput(problem)
  }
  const patterns = globs.map((glob) => segmentPattern(glob))
  // ripgrep would include a hidden file that a type names, such as `.zshrc`.
  const matches = (fileName: string): boolean =>
    !fileName.startsWith('.') && patterns.some((pattern) => pattern.test(fileName))
  return { name, matches }
}
