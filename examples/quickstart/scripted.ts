import type { JsonObject } from 'thinharness'
import type { ProviderRequest, Reply } from 'thinharness/testing'
import { QUESTION } from './question.js'
import { refundOf, summed } from './refunds.js'
import type { Policy } from './refunds.js'

const TASK = `Find in notes/ the days of the storm that hit Borealis in October 2026, and the refund policy that is in force:
from how many days late on, how many percent, and how many cents at most.`

/**
 * What the scripted provider says in place of a model. It knows how to go about the quickstart's question, and nothing of
 * the data: days, rates and orders it takes from what the tools answered.
 */
export function answerByScript({ turn, messages }: ProviderRequest): Reply {
  const [asked] = messages
  const prompt = asked?.role === 'user' ? asked.content : ''
  const answers = messages.filter((message) => message.role === 'tool').map(({ content }) => contentOf(content))
  if (prompt === QUESTION) return answerQuestion(turn, answers)
  if (prompt === TASK) return lookUp(turn, answers)
  return { text: 'I am a script and know one question only. Set a key or name a model (--model) to ask your own.' }
}

/** Of the run at the top. */
function answerQuestion(turn: number, [found = '', , orderRows = '']: readonly string[]): Reply {
  switch (turn) {
    case 0:
      return {
        text: 'The reader finds the storm and the policy in the notes, while I look at what else is here.',
        calls: [
          { name: 'subagent', arguments: { task: TASK, agent: 'reader' } },
          { name: 'list', arguments: { path: '.' } },
        ],
      }
    case 1:
      return {
        text: 'Now the orders that it applies to.',
        calls: [{ name: 'jsonl_search', arguments: affectedOrders(stormDays(found), policyIn(found)) }],
      }
    case 2: {
      const content = report(stormDays(found), policyIn(found), orderRows)
      return { calls: [{ name: 'write', arguments: { path: 'report.md', content } }] }
    }
    default:
      return { text: 'The report is in `report.md`. It follows the policy in force, not the one of 2024.' }
  }
}

/** Of the reader: it gives back the lines that say what was asked for. */
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
      return { text: facts.map((line) => line.replace(/^\d+\t/, '')).join('\n') }
    }
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
