/** Endings of names of files, which look like hosts. */
const FILES = new Set(
  'c cc cpp cs css csv cts cfg conf doc docx env gif go h html htm ini java jpeg jpg js json jsonl jsx key kt lock log md mdx mjs mts pdf php png py rb rs sql svg tex toml ts tsv tsx txt vue xls xlsx xml yaml yml'.split(
    ' ',
  ),
)

const BETWEEN_WORDS = /[\s"'`<>()[\]{},;|\\=]+/
/** What separates the commands of a line, and what quotes them. */
const BETWEEN_COMMANDS = /&&|\|\||[;|&`"'()]|\$\(/
const OPERATOR = /&&|\|\||[|`]|\$\(/
/** An option, a path or a variable. */
const SIGN = /(?:^|\s)(?:--?[a-z]|\.{0,2}\/|[~$])/
/** Letters and digits of the shortest command. */
const SHORTEST_COMMAND = 4

/** One form of text: compatible forms, marks, invisible characters and case do not count. */
export function plainForm(text: string): string {
  return text
    .normalize('NFKD')
    .replace(/[\p{M}\p{Cf}]+/gu, '')
    .toLowerCase()
    .replaceAll('\u3002', '.')
}

/** The hosts, and the addresses of people, in a plain text. */
export function addressesIn(plain: string): ReadonlySet<string> {
  const found = new Set<string>()
  for (const word of plain.split(BETWEEN_WORDS)) {
    if (!word.includes('.') && !word.includes('://')) continue
    for (const address of addressesOf(word)) found.add(address)
  }
  return found
}

function addressesOf(word: string): readonly string[] {
  const [start = '', ...urls] = word.split('://')
  if (urls.length > 0) return urls.map(hostOf).filter((host) => host !== '')
  const at = start.lastIndexOf('@')
  const host = hostOf(start)
  if (!isHost(host)) return []
  const before = start.slice(0, Math.max(at, 0))
  const person = before.slice(Math.max(before.lastIndexOf('/'), before.lastIndexOf(':')) + 1)
  return [person === '' ? host : `${person}@${host}`]
}

/** `evil.test` of `user@www.evil.test.:80/path`. */
function hostOf(address: string): string {
  const [authority = ''] = address.split(/[/?#]/, 1)
  const host = authority.slice(authority.lastIndexOf('@') + 1).replace(/:.*$/, '')
  return withoutEnd(host.replace(/^(?:\*\.|www\.)/, ''), '.!?')
}

/** Without these characters at its end. A pattern would try every place of a long row of them: the text is a stranger's. */
function withoutEnd(word: string, characters: string): string {
  let end = word.length
  while (end > 0 && characters.includes(word.charAt(end - 1))) end--
  return word.slice(0, end)
}

function isHost(name: string): boolean {
  const labels = name.split('.')
  const last = labels.at(-1) ?? ''
  if (labels.length < 2 || !labels.every((label) => /^[\p{L}\p{N}_-]+$/u.test(label))) return false
  if (labels.length === 4 && labels.every((label) => /^\d{1,3}$/.test(label))) return true
  return /^(?:\p{L}{2,}|xn--[a-z0-9-]+)$/u.test(last) && !FILES.has(last)
}

/** The words of a plain text, without the punctuation around them, between single spaces. */
export function wordsOf(plain: string): string {
  const words = plain.split(/[\s"'`;|&()]+/).map((word) => withoutEnd(word, '.,:!?'))
  return ` ${words.filter((word) => word !== '').join(' ')} `
}

/** The commands in a plain text, of at least two words each, as `wordsOf`. */
export function commandsIn(plain: string): readonly string[] {
  const lines = plain.split(/[\r\n]+/).filter((line) => OPERATOR.test(line) || SIGN.test(line))
  return lines
    .flatMap((line) => line.split(BETWEEN_COMMANDS))
    .map(wordsOf)
    .filter((words) => words.trim().includes(' ') && words.replace(/[^\p{L}\p{N}]+/gu, '').length >= SHORTEST_COMMAND)
}
