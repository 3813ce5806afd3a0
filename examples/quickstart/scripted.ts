import type { JsonObject } from 'thinharness'
import type { ProviderRequest, Reply } from 'thinharness/testing'
import { QUESTION } from './question.js'
import { refundOf, summed } from './refunds.js'
import type { Policy } from './refunds.js'

/**
 * What the scripted provider says in place of a model. It knows how to go about the quickstart's question, and nothing of
 * the data: days, rates and orders it takes from what the tools answered.
 */
export function answerByScript({ turn, messages }: ProviderRequest): Reply {
  if (messages[0]?.role !== 'user' || messages[0].content !== QUESTION) {
    return { text: 'I am a script and know one question only. Set a key or name a model (--model) to ask your own.' }
  }
  const answers = messages.filter((message) => message.role === 'tool').map(({ content }) => contentOf(content))
  const [, , carrierNote = '', policyNote = '', orderRows = ''] = answers
  switch (turn) {
    case 0:
      return {
        text: 'I look for the storm and for the policy in the notes.',
        calls: [
          { name: 'search', arguments: { query: 'storm|refund', path: 'notes' } },
          { name: 'list', arguments: { path: '.' } },
        ],
      }
    case 1:
      return {
        text: 'There is a note on the carrier, and a policy that replaced an older one. I read both.',
        calls: [
          { name: 'read', arguments: { path: 'notes/carriers/borealis.md' } },
          { name: 'read', arguments: { path: 'notes/policies/refunds.md' } },
        ],
      }
    case 2:
      return {
        text: 'Now the orders that it applies to.',
        calls: [{ name: 'jsonl_search', arguments: affectedOrders(stormDays(carrierNote), policyIn(policyNote)) }],
      }
    case 3: {
      const content = report(stormDays(carrierNote), policyIn(policyNote), orderRows)
      return { calls: [{ name: 'write', arguments: { path: 'report.md', content } }] }
    }
    default:
      return { text: 'The report is in `report.md`. It follows the policy in force, not the one of 2024.' }
  }
}

function contentOf(content: unknown): string {
  const envelope = JSON.parse(String(content)) as { content: string }
  return envelope.content
}

interface Days {
  readonly from: string
  readonly to: string
}

function stormDays(note: string): Days {
  const [, from = '', to = ''] = /(\d{4}-\d\d-\d\d) to (\d{4}-\d\d-\d\d): \*\*storm/.exec(note) ?? []
  return { from, to }
}

function policyIn(note: string): Policy {
  const number = (pattern: RegExp): number => Number(pattern.exec(note)?.[1])
  return {
    daysLate: number(/more than (\d+) days/),
    percent: number(/(\d+) percent/),
    mostCents: number(/more than \*\*(\d+) cents/),
  }
}

function affectedOrders({ from, to }: Days, { daysLate }: Policy): JsonObject {
  return {
    path: 'orders.jsonl',
    where: [
      { field: 'carrier', op: 'eq', value: 'Borealis' },
      { field: 'placed_on', op: 'gte', value: from, type: 'date' },
      { field: 'placed_on', op: 'lte', value: to, type: 'date' },
      { field: 'days_late', op: 'gt', value: String(daysLate), type: 'number' },
      { field: 'status', op: 'eq', value: 'delivered' },
    ],
    fields: { id: 0, total_cents: 0 },
    max_matches_per_file: 1000,
  }
}

function report({ from, to }: Days, policy: Policy, rows: string): string {
  const found = [...rows.matchAll(/"id": "(\w+)", "total_cents": (\d+)/g)]
  const refunds = found.map(([, id = '', cents]) => ({ id, refundCents: refundOf(Number(cents), policy) }))
  const { orders, totalCents, largest } = summed(refunds)
  return `# Refunds for the storm at Borealis

Orders placed with Borealis from ${from} to ${to} and delivered more than ${policy.daysLate} days late: ${policy.percent} percent of
each, at most ${policy.mostCents} cents, by the policy in force since 2026-01-01.

- Orders: **${orders}**
- Refunds in all: **${totalCents} cents**

The five largest:

${largest.map(({ id, refundCents }) => `- ${id}: ${refundCents} cents`).join('\n')}
`
}
