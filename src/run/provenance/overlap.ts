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
function plainForm(text: string): string {
  return text
    .normalize('NFKD')
    .replace(/[\p{M}\p{Cf}]+/gu, '')
    .toLowerCase()
    .replaceAll('\u3002', '.')
}

/** The hosts and people that a text names. */
interface Addresses {
  readonly hosts: ReadonlySet<string>
  /** Names that are a host or a file: `setup.py`. */
  readonly names: ReadonlySet<string>
  /** `eve@mail.test`. */
  readonly people: ReadonlySet<string>
}

/** The hosts, and the addresses of people, in a plain text. */
function addressesIn(plain: string): Addresses {
  const found = { hosts: new Set<string>(), names: new Set<string>(), people: new Set<string>() }
  for (const [, host = ''] of plain.matchAll(/\[([\da-f:.]{2,45})\]/g)) addHost(found, `[${host}]`)
  for (const word of plain.split(BETWEEN_WORDS)) {
    if (/^[\da-f]{0,4}(?::[\da-f]{0,4}){2,7}[\d.]{0,15}$/.test(word)) addHost(found, `[${word}]`)
    const [start = '', ...urls] = word.split('://')
    for (const url of urls) addHost(found, hostOf(url))
    if (urls.length === 0 && start.includes('.')) addName(found, start)
  }
  return found
}

type Found = { readonly [Kind in keyof Addresses]: Set<string> }

/** A host that is one for certain, in the form of URLs: `0x7f.1` is `127.0.0.1`. */
function addHost({ hosts }: Found, host: string): void {
  if (host === '') return
  const url = `http://${host}/`
  hosts.add(URL.canParse(url) ? new URL(url).hostname : host)
}

function addName(found: Found, word: string): void {
  const host = hostOf(word)
  if (!isHost(host)) return
  const at = word.lastIndexOf('@')
  const before = word.slice(0, Math.max(at, 0))
  const person = before.slice(Math.max(before.lastIndexOf('/'), before.lastIndexOf(':')) + 1)
  if (person !== '') found.people.add(`${person}@${host}`)
  else if (FILES.has(host.slice(host.lastIndexOf('.') + 1)) && !/^[^/?#]*:\d/.test(word)) found.names.add(host)
  else addHost(found, host)
}

/** True if a text names a host or a person of another: a host also by one below it, or by a person there. */
function shareAddress(text: Addresses, source: Addresses): boolean {
  if (text.hosts.size + text.names.size + text.people.size === 0) return false
  const people = new Set([...source.people].map(hostOfPerson))
  const isHostOf = (host: string): boolean => source.hosts.has(host) || source.names.has(host) || people.has(host)
  for (const host of text.hosts) if (withParents(host).some(isHostOf)) return true
  for (const name of text.names) if (withParents(name).some((host) => source.hosts.has(host))) return true
  for (const person of text.people) {
    const host = hostOfPerson(person)
    const isHere = (each: string): boolean => source.hosts.has(each) || source.names.has(each)
    if (source.people.has(person) || withParents(host).some(isHere)) return true
  }
  return false
}

function hostOfPerson(person: string): string {
  return person.slice(person.lastIndexOf('@') + 1)
}

/** `a.b.test`, `b.test`: a host and those above it, of two labels at least. */
function withParents(host: string): readonly string[] {
  if (host.startsWith('[') || /^[\d.]+$/.test(host)) return [host]
  const labels = host.split('.').slice(-MOST_LABELS)
  return labels.slice(0, Math.max(1, labels.length - 1)).map((_, index) => labels.slice(index).join('.'))
}

/** The longest name of a host has 127. */
const MOST_LABELS = 127

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
  return /^(?:\p{L}{2,}|xn--[a-z0-9-]+)$/u.test(last)
}

/** The words of a plain text, without the punctuation around them, between single spaces. */
function wordsOf(plain: string): string {
  const words = plain.split(/[\s"'`;|&()]+/).map((word) => withoutEnd(word, '.,:!?'))
  return ` ${words.filter((word) => word !== '').join(' ')} `
}

/** The commands in a plain text, of at least two words each, as `wordsOf`. `isScript`: every line of it is one. */
function commandsIn(plain: string, isScript: boolean): readonly string[] {
  const lines = plain.split(/[\r\n]+/).filter((line) => isScript || OPERATOR.test(line) || SIGN.test(line))
  return lines
    .flatMap((line) => line.split(BETWEEN_COMMANDS))
    .map(wordsOf)
    .filter((words) => words.trim().includes(' ') && words.replace(/[^\p{L}\p{N}]+/gu, '').length >= SHORTEST_COMMAND)
}
