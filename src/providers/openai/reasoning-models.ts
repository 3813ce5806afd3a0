/**
 * Whether a model of this name reasons: true, false, or null for a name that says nothing, such as
 * that of another vendor's model or of an Azure deployment. What the user's `capabilities` say wins.
 */
export function isReasoningModel(id: string): boolean | null {
  const rule = RULES.find(([pattern]) => pattern.test(id))
  return rule === undefined ? null : rule[1]
}

/** The first that fits decides. */
const RULES: readonly (readonly [RegExp, boolean])[] = [
  [named('gpt-5(-[^.]*)?-chat'), false],
  [named('gpt-5\\.3-chat'), false],
  [named('gpt-([5-9]|[12]\\d)(?!\\d)'), true],
  [named('o\\d'), true],
  [named('(codex-|computer-use|gpt-oss)'), true],
  [named('(gpt-[1-4]|chatgpt-|davinci|babbage)'), false],
]

/** A name that begins so, behind the prefixes of gateways (`openai/gpt-5`) and of fine-tuned models (`ft:gpt-4.1:…`). */
function named(start: string): RegExp {
  return new RegExp(`^(.*/)?(ft:)?${start}`, 'i')
}
