import { inferModel } from '#providers/infer-model.js'
import { probe } from '#providers/probe.js'
import type { ProbeCheck } from '#providers/probe.js'
import { priceOf } from '#run/money/find-price.js'
import { CommandError, EXIT } from './exit-codes.js'
import { oneLine, padded, timeText } from './terminal/terminal.js'
import type { Colour, Terminal } from './terminal/terminal.js'

/** Without these a model is of no use in a run. */
const NEEDED = ['answers', 'streaming', 'tools'] as const
const MARKS: Readonly<Record<ProbeCheck['found'], readonly [mark: string, colour: Colour]>> = {
  yes: ['✓', 'green'],
  no: ['✗', 'red'],
  unknown: ['?', 'yellow'],
}

/** `probe [MODEL]`: a table of what works. */
export async function probeModel(named: string | undefined, terminal: Terminal): Promise<number> {
  const ref = named ?? terminal.env['THINHARNESS_MODEL']
  if (ref === undefined) throw new CommandError('Name a model, such as `thinharness probe openai:gpt-5.5`.')
  const model = await inferModel(ref)
  model.check?.()
  const { checks } = await probe(model)
  const row = (name: string, found: ProbeCheck['found'], text: string): void => {
    const [mark, colour] = MARKS[found]
    terminal.out(`${mark} ${padded(name, 14)} ${text}\n`, [mark, colour])
  }
  for (const [name, check] of Object.entries(checks))
    row(name, check.found, check.found === 'yes' ? timeText(check.ms) : oneLine(check.because))
  const price = await priceOf(model, {})
  row('price', price === null ? 'no' : 'yes', price === null ? 'not known' : 'known')
  return NEEDED.every((name) => checks[name].found === 'yes') ? EXIT.done : EXIT.failed
}
