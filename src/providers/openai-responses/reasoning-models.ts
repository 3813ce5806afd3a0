/**
 * Whether a model of this name reasons (spec §3.5, RF-20): true, false, or null for a name that says nothing, such as
 * that of another vendor's model or of an Azure deployment. What the user's `capabilities` say wins (H-25).
 */
export function isReasoningModel(id: string): boolean | null {
  const name = bareName(id)
  const rule = RULES.find(([pattern]) => pattern.test(name))
  return rule === undefined ? null : rule[1]
}

/** The first that fits decides. */
const RULES: readonly (readonly [RegExp, boolean])[] = [
  [/^gpt-5(-[^.]*)?-chat/, false],
  [/^gpt-5\.3-chat/, false],
  [/^gpt-([5-9]|\d\d)(?!\d)/, true],
  [/^o\d/, true],
  [/^(codex-|computer-use|gpt-oss)/, true],
  [/^(gpt-[1-4]|chatgpt-|davinci|babbage)/, false],
]

/** Without the prefixes of gateways (`openai/gpt-5`) and of fine-tuned models (`ft:gpt-4.1:…`). */
function bareName(id: string): string {
  return id
    .toLowerCase()
    .replace(/^.*\//, '')
    .replace(/^ft:/, '')
}
