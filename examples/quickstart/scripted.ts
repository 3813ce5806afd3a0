import type { JsonObject } from 'thinharness'
import type { ProviderRequest, Reply } from 'thinharness/testing'
import { QUESTION } from './question.js'
import { refundOf, summed } from './refunds.js'
import type { Policy } from './refunds.js'

const TASK = `Find in notes/ the days of the storm that hit Borealis in October 2026, and the refund policy that is in force:
from how many days late on, how many percent, and how many cents at most.`

/**
 * The replies of the scripted provider. They know the steps to answer the quickstart's question, but not the data: days,
 * rates and orders come from the tool results.
 */
export function answerByScript({ turn, messages }: ProviderRequest): Reply {
  const [asked] = messages
  const prompt = asked?.role === 'user' ? asked.content : ''
  const answers = messages.filter((message) => message.role === 'tool').map(({ content }) => String(content))
  if (prompt === QUESTION) return answerQuestion(turn, answers)
  if (prompt === TASK) return lookUp(turn, answers)
  return {
    text: 'These replies are scripted and cover one question only. Set an API key or choose a model (--model) to ask your own.',
  }
}

/** Replies of the main run. */
function answerQuestion(turn: number, [found = '', listed = '', orderRows = '']: readonly string[]): Reply {
  switch (turn) {
    case 0:
      return {
        text: 'The reader looks up the storm and the policy in the notes, while I list the other files.',
        calls: [
          { name: 'subagent', arguments: { task: TASK, agent: 'reader' } },
          { name: 'list', arguments: { path: '.' } },
        ],
      }
    case 1:
      return {
        text: 'Now the orders that the policy applies to.',
        calls: [
          { name: 'jsonl_search', arguments: affectedOrders(stormDays(found), policyIn(found)) },
          // The report of an earlier run is replaced: it has to be read first.
          ...(listed.includes('report.md') ? [{ name: 'read', arguments: { path: 'report.md' } }] : []),
        ],
      }
    case 2: {
      const content = report(stormDays(found), policyIn(found), orderRows)
      return { calls: [{ name: 'write', arguments: { path: 'report.md', content } }] }
    }
    default:
      return { text: 'The report is in `report.md`. It follows the policy in force, not the one of 2024.' }
  }
}

/** Replies of the reader: it returns the relevant lines. */
function lookUp(turn: number, [, ...notes]: readonly string[]): Reply {
  const read = (path: string) => ({ name: 'read', arguments: { path } })
  switch (turn) {
    case 0:
      return { calls: [{ name: 'search', arguments: { query: 'storm|refund', path: 'notes' } }] }
    case 1:
      return { calls: ['notes/carriers/borealis.md', 'notes/policies/refunds.md'].map(read) }
    default: {
      const lines = notes.join('\n').split('\n')
      const facts = lines.filter((line) => /\*\*storm|In force|delivered \*\*|percent|cents/.test(line))
      return { text: facts.join('\n') }
    }
  }
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
  const found = [...rows.matchAll(/"id": ?"(\w+)", ?"total_cents": ?(\d+)/g)]
  const refunds = found.map(([, id = '', cents]) => ({ id, refundCents: refundOf(Number(cents), policy) }))
  const { orders, totalCents, largest } = summed(refunds)
  return `# Refunds for the storm at Borealis

Orders placed with Borealis from ${from} to ${to} and delivered
more than ${policy.daysLate} days late: ${policy.percent} percent of each, at most ${policy.mostCents} cents, by the
policy in force since 2026-01-01.

- Orders: **${orders}**
- Total refunds: **${totalCents} cents**

The five largest:

${largest.map(({ id, refundCents }) => `- ${id}: ${refundCents} cents`).join('\n')}
`
}
