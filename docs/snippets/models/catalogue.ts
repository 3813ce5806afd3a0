import { catalogue, decide } from 'thinharness/models'

/** For a list from which a person chooses. */
export const choices = catalogue()
  .filter(({ hasKey, contextTokens }) => hasKey && (contextTokens ?? 0) >= 200_000)
  .map(({ ref, price }) => `${ref} ($${price?.inputPerMillion ?? '?'} a million tokens)`)

export async function isComplaint(mail: string): Promise<boolean> {
  const asked = { question: 'Is this a complaint?', choices: ['yes', 'no'], context: { mail } } as const
  const { choice } = await decide('openai:gpt-5.5-mini', asked)
  return choice === 'yes'
}
