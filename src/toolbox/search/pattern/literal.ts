import type { PatternNode } from './syntax.js'

/** A text that is in every match of a pattern, so that what lacks it need not be looked at. */
export interface RequiredLiteral {
  readonly text: string
  /** The pattern is this text and nothing else: finding it is matching. */
  readonly isWhole: boolean
}

/** The longest text that every match of `node` holds; `undefined` when there is none. */
export function requiredLiteral(node: PatternNode): RequiredLiteral | undefined {
  const runs = [{ text: '', isWhole: true }]
  collect(node, runs)
  const whole = runs.length === 1 ? runs[0] : undefined
  const longest = runs.reduce((best, { text }) => (text.length > best.length ? text : best), '')
  return longest === '' ? undefined : { text: longest, isWhole: whole?.isWhole === true }
}

interface Run {
  text: string
  isWhole: boolean
}

/** Adds to the last run what must follow it; whatever is not a plain character ends that run and begins another. */
function collect(node: PatternNode, runs: Run[]): void {
  switch (node.kind) {
    case 'empty':
      return
    case 'set': {
      const last = runs.at(-1)
      if (node.set.only === undefined || last === undefined) breakRun(runs)
      else last.text += String.fromCodePoint(node.set.only)
      return
    }
    case 'sequence':
      for (const part of node.parts) collect(part, runs)
      return
    case 'repeat':
      if (node.min > 0) collect(node.part, runs)
      if (node.min !== 1 || node.max !== 1) breakRun(runs)
      return
    case 'assertion':
    case 'choice':
      breakRun(runs)
  }
}

function breakRun(runs: Run[]): void {
  runs.push({ text: '', isWhole: false })
}
