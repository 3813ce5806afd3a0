import type { JsonObject } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import type { Reply } from 'thinharness/testing'
import { parseEnvelope } from '#core/tools/boundary/envelope.js'
import type { Envelope } from '#core/tools/boundary/envelope.js'

/** A model of a run that hands out these tasks in one reply, and of the runs that do them: by prompt, turn by turn. */
export function handing(tasks: readonly JsonObject[], plays: Readonly<Record<string, readonly (string | Reply)[]>>) {
  return new ScriptedModel().always(({ messages, turn }) => {
    const [prompt] = messages.flatMap((each) => (each.role === 'user' ? [String(each.content).split('\n')[0]] : []))
    if (prompt === 'Go.' && plays['Go.'] === undefined) {
      return turn === 0 ? { calls: tasks.map((args) => ({ name: 'subagent', arguments: args })) } : 'All done.'
    }
    const line = plays[prompt ?? '']?.[turn]
    if (line === undefined) throw new Error(`Nobody wrote turn ${turn} of ${prompt}.`)
    return line
  })
}

/** What the model read of a call. */
export function envelopeIn(record: { readonly output: string } | undefined): Envelope {
  return parseEnvelope(record?.output ?? '')
}
