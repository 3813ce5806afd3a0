import type { ProviderRequest, Reply } from 'thinharness/testing'

const TOPICS = { crack: 'broken', late: 'late', instead: 'wrong', bitter: 'taste', best: 'praise' } as const
let requests = 0

/** The scripted replies for use without a model. Now and then the first answer does not fit. */
export function answer({ turn, messages }: ProviderRequest): Reply {
  const text = JSON.stringify(messages)
  const [, topic = 'praise'] = Object.entries(TOPICS).find(([word]) => text.includes(word)) ?? []
  const isUrgent = /answer soon|written twice/.test(text)
  requests += 1
  const mood = turn === 0 && requests % 97 === 0 ? 9 : topic === 'praise' ? 5 : isUrgent ? 1 : 2
  return { calls: [{ name: 'final_result', arguments: { topic, mood, urgent: isUrgent } }] }
}
