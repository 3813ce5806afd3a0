// Facts that are read at turn 3 and asked for much later: their form, the questions, and a writer that keeps them.

export const NAMES = ['Borealis', 'Meridian', 'Castellan', 'Halcyon', 'Ostrava'] as const
export const NOTES = 'notes.md'

/** The turn that reads the facts, counted from 1. */
export const PLANTED = 3

function codeOf(name: string): string {
  return String(100_000 + ((name.length * 104_729 + name.charCodeAt(0) * 7919 + name.charCodeAt(1) * 31) % 900_000))
}

function factOf(name: string): string {
  return `The access code of ${name} is ${codeOf(name)}.`
}

/** A file with the facts, between other lines. */
export function notes(): string {
  const others = (from: number): string =>
    Array.from(
      { length: 10 },
      (_none, line) => `Note ${from + line}: the delivery of crate ${from * line + 17} is on time.`,
    ).join('\n')
  return NAMES.map((name, index) => `${others(index * 100)}\n${factOf(name)}`).join('\n')
}

export function questionAbout(name: string): string {
  return `What is the access code of ${name}?`
}

/** The name in a question; null if it is none. */
export function nameIn(text: string): string | null {
  return /^What is the access code of (\w+)\?$/.exec(text)?.[1] ?? null
}

/** The answer in a text; null if it is not there. */
export function codeIn(text: string, name: string): string | null {
  return new RegExp(`The access code of ${name} is (\\d+)\\.`).exec(text)?.[1] ?? null
}

export function isRight(answer: string, name: string): boolean {
  return answer === codeOf(name)
}

/** Lines of filler in a summary. */
const LINES = 40
const LONGEST_LINE = 150

/** A summary by a good writer: every fact that it can see, and some words about the rest. */
export function summaryOf(text: string): string {
  const facts = NAMES.filter((name) => codeIn(text, name) !== null).map(factOf)
  const lines = text.split('\n')
  const step = Math.max(1, Math.floor(lines.length / LINES))
  const rest = lines.filter((_line, index) => index % step === 0).slice(0, LINES)
  return [...facts, ...rest.map((line, index) => `${index + 1}. ${line.slice(0, LONGEST_LINE)}`)].join('\n')
}
