import { sourcedEntries } from './hosted-sources.js'
import type { ContentFlow } from '#contracts/flows.js'
import type { OwnExtension } from '#core/extension/own-extension.js'
import type { Provenance } from './flows.js'
import type { ProvenanceOptions } from './options.js'

/** Asks a person about calls that would carry untrusted content without a rule that allows it, or denies them. */
export function provenance(options: ProvenanceOptions, inherited: Provenance['inherited'] = []): OwnExtension {
  const decision = options.otherwise ?? 'ask'
  return {
    name: 'provenance',
    policy: async ({ arguments: argumentsText }, spec, { transcript, root, tools }) => {
      const { flowsInto } = await import('./flows.js')
      const flows = flowsInto({ options, inherited, root, tools }, transcript, { spec, argumentsText })
      return flows.length === 0 ? null : { decision, reason: reasonOf(flows), provenance: flows }
    },
    // A child gets its prompt from its parent's model: untrusted content that the model has read may be in it.
    forChild: (transcript) => provenance(options, [...inherited, ...sourcedEntries(transcript)]),
  }
}

function reasonOf([first]: readonly ContentFlow[]): string {
  const { argument = '', source } = first ?? {}
  const from = source === undefined ? 'a source' : [source.kind, source.name ?? ''].join(' ').trim().slice(0, 200)
  return argument === ''
    ? `it comes after content of an untrusted source (${from}).`
    : `\`${argument}\` has content of an untrusted source (${from}), which must not get there.`
}
