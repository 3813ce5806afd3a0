// Answers without a model, so that the example works without a key. Delete this file when you use a real one.
import { resultForModel } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'

export function demo() {
  return new ScriptedModel().always(({ transcript }) => {
    const last = transcript.at(-1)
    const asked = transcript.findLast((entry) => entry.role === 'user')
    const text = asked.content.map((part) => part.text ?? '').join(' ')
    const number = /\d{4}/.exec(text)?.[0] ?? '1042'
    const wantsMoney = /refund|money/i.test(text)
    if (last.role === 'user') {
      if (wantsMoney) return { calls: [{ name: 'refund', arguments: { number, amount: 20 } }] }
      return { calls: [{ name: 'find_order', arguments: { number } }] }
    }
    if (last.name === 'refund') return `Order ${number}: the refund was ${last.isError ? 'not paid' : 'paid'}.`
    const { status, carrier } = JSON.parse(resultForModel(last, 'flag'))
    return `Order ${number} is ${status}, by ${carrier}.`
  })
}
