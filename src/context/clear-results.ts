import { defineExtension } from '../index.js'
import type { Extension } from '../index.js'
import { parse } from '../contracts/parse.js'
import { partial } from '../util/shape.js'
import { cleared } from './clearing.js'
import { needOf } from './need.js'
import { TRIGGER } from './options.js'
import type { TriggerOptions } from './options.js'
import { recall } from './recall.js'

export type ClearResultsOptions = TriggerOptions

const OPTIONS = partial<ClearResultsOptions>(TRIGGER)

/**
 * Keeps a long conversation within the model's window without another model: old tool results become one line each, and if
 * that is not enough, the oldest steps become one line together. The tool `recall` reads the originals, which stay in the log.
 * It acts rarely and in large steps, so that the provider's cache holds in between.
 *
 * Throws `invalid_options` for options of the wrong form.
 *
 * @example
 * new Harness({ model: 'anthropic:claude-sonnet-5', root: '.', use: [clearResults()] })
 */
export function clearResults(options: ClearResultsOptions = {}): Extension {
  const given = parse(OPTIONS, options, '`clearResults`')
  return defineExtension({
    name: 'clear_results',
    tools: [recall],
    view(context) {
      const need = needOf(context, given)
      if (need === null) return null
      const shorter = cleared(context, need, given)
      return shorter === null ? null : { ...shorter, tokensBefore: Math.round(need.tokens) }
    },
  })
}
