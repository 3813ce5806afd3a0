import { Budget } from 'thinharness'
import type { Harness, Model } from 'thinharness'
import { decide } from 'thinharness/models'

export interface Case {
  readonly id: string
  readonly question: string
  readonly expected: string
}

/** Runs an agent over a dataset, and has a second model judge each answer. Gives the share of right answers. */
export async function evaluate(agent: Harness, judge: Model | string, cases: readonly Case[]): Promise<number> {
  const budget = new Budget({ costUsd: 2 })
  let right = 0
  for await (const row of agent.map(cases, ({ question }) => ({ prompt: question }), { budget, concurrency: 8 })) {
    if (row.status !== 'completed') continue
    const { choice } = await decide(judge, {
      question: 'Does the answer say the same as the expected one?',
      choices: ['yes', 'no'],
      context: { question: row.item.question, expected: row.item.expected, answer: row.result.text },
      budget,
    })
    if (choice === 'yes') right += 1
    else console.log(`${row.item.id}: ${row.result.text}`)
  }
  return right / cases.length
}
