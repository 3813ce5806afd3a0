import { HarnessError } from '#contracts/errors.js'

/** Short texts by which runs are found. Shown to no model. */
export type Labels = Readonly<Record<string, string>>

/** Labels that a run can have. */
const MOST = 16

/**
 * The labels of a run by several who set some: the first one wins.
 * @throws HarnessError `invalid_options` for more than 16.
 */
export function mergedLabels(given: readonly Labels[]): Labels {
  const labels: Labels = Object.assign({}, ...given.toReversed()) as Labels
  const count = Object.keys(labels).length
  if (count <= MOST) return Object.freeze(labels)
  throw new HarnessError('invalid_options', `Expected at most ${MOST} labels of a run, got ${count}.`)
}
