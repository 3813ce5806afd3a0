/**
 * The secrets of this process that messages must not show: keys of providers, values of headers, variables and arguments of
 * servers. Whatever echoes them (an error of a provider, the output of a program, an address) is masked where errors are made.
 */
const known = new Map<string, readonly string[]>()

/** A process that makes models for many customers keeps the latest. */
const MOST_SECRETS = 10_000
/** Shorter values, such as the `x` that a local server is given, protect nothing and occur in any word. */
const SHORTEST = 6

/** Masks `value` in all messages from now on. */
export function keepSecret(value: string): void {
  const secret = value.replace(/^(?:Bearer|Basic|Token)\s+/i, '').trim()
  if (secret.length < SHORTEST || known.has(secret)) return
  const inAddress = encodeURIComponent(secret.toWellFormed())
  const forms = [secret, JSON.stringify(secret).slice(1, -1), inAddress, inAddress.replaceAll('%20', '+')]
  known.set(secret, [...new Set(forms)])
  for (const oldest of known.keys()) {
    if (known.size <= MOST_SECRETS) break
    known.delete(oldest)
  }
}

/** Names of headers, variables, parameters and options whose values are secrets. */
const SECRET_NAME =
  /auth|api.?key|\bkey\b|_key|-key|token|secret|passw|passphrase|pwd|cookie|credential|signature|\bsig\b/i
/** Names of values that are long and no secrets. */
const PUBLIC_NAME =
  /version|beta|agent|accept|content|referer|title|organi[sz]ation|project|region|model|path|home|lang|url/i

/** Masks the values that are secrets: by their names, or since they look like nothing else; of `headers` all but the public ones. */
export function keepSecretsOf(values: Iterable<readonly [name: string, value: string]>, headers = false): void {
  for (const [name, value] of values) {
    const isSecret = SECRET_NAME.test(name) || (!PUBLIC_NAME.test(name) && (headers || looksSecret(value)))
    if (isSecret) keepSecret(value)
    keepSecretsIn(value)
  }
}

/** Masks the secrets in the arguments of a program: `--token x`, `--token=x`, and what looks like a key. */
export function keepSecretArguments(args: readonly string[]): void {
  for (const [index, arg] of args.entries()) {
    const [, name = '', value = arg] = /^--?([\w-]+)=(.*)$/s.exec(arg) ?? []
    const option = name === '' && /^--?[\w-]+$/.test(args[index - 1] ?? '') ? (args[index - 1] ?? '') : name
    const isOption = /^--?[\w-]+$/.test(arg)
    const isSecret = SECRET_NAME.test(option) || (!PUBLIC_NAME.test(option) && looksSecret(value))
    if (!isOption && isSecret) keepSecret(value)
    keepSecretsIn(value)
  }
}

/** Masks the password and the secret parameters of an address. */
export function keepSecretsIn(value: string): void {
  if (!value.includes('://') || !URL.canParse(value)) return
  const { password, searchParams } = new URL(value)
  if (password !== '') keepSecret(decoded(password))
  keepSecretsOf(searchParams)
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** One word that says so, or with several letters and digits: no path, no address, no file and no date. */
function looksSecret(value: string): boolean {
  if (!/^[\w+=.~!@$%^&*-]{8,}$/.test(value) || /^[\w-]+\.[a-z]{2,4}$/i.test(value)) return false
  return /secret|passw|token/i.test(value) || /^(?=(?:.*[a-z]){3})(?=(?:.*\d){3}).{12,}$/i.test(value)
}

/** `text` without the known secrets, and without anything that looks like a key: some providers repeat the key that they reject. */
export function withoutSecrets(text: string): string {
  let clean = text.replace(KEYS, '***')
  for (const forms of known.values())
    for (const form of forms) if (clean.includes(form)) clean = clean.replaceAll(form, '***')
  return clean
}

const KEYS = /\b(?:sk|pk|rk|gsk|xai|hf|pplx|nvapi|AIza|AKIA)[-_]?[\w-]{16,}|(?<=\bBearer\s+)[^\s"',]{8,}/g

/** The members of an error that are shown when it is printed. */
type Members = Readonly<Record<string, unknown>>

/** Deepest chain of causes, and deepest field of them: what is deeper is not printed with an error. */
const DEEPEST = 3
const MOST_ITEMS = 1000

/**
 * A cause for an error: itself, or a copy without secrets if it shows any, also in its stack, its fields or its own cause. Undefined in
 * place of one that cannot be read.
 */
export function causeWithoutSecrets(cause: unknown): unknown {
  try {
    return cleanCause(cause, 0)
  } catch {
    return undefined
  }
}

function cleanCause(cause: unknown, depth: number): unknown {
  if (typeof cause === 'string') return withoutSecrets(cause)
  if (typeof cause !== 'object' || cause === null || depth > DEEPEST) return cause
  // Its own message and cause are clean, and the run that it holds is no message.
  if (cause instanceof Error && cause.name === 'HarnessError') return cause
  if (!(cause instanceof Error)) return cleanValue(cause, depth)
  const members: Members = Object.fromEntries(Object.entries(cause))
  const inner = cleanCause(cause.cause, depth + 1)
  const texts = [cause.message, cause.stack ?? '']
  const clean = texts.map(withoutSecrets)
  const own = cleanValue(members, depth) as Members
  if (own === members && inner === cause.cause && clean.every((text, index) => text === texts[index])) return cause
  const copy = new Error(clean[0], inner === undefined ? {} : { cause: inner })
  return Object.assign(copy, own, { name: cause.name, stack: clean[1] })
}

/** The same value if there is nothing to mask in it. */
function cleanValue(value: unknown, depth: number): unknown {
  if (typeof value === 'string') return withoutSecrets(value)
  if (typeof value !== 'object' || value === null || depth > DEEPEST) return value
  if (value instanceof Error) return cleanCause(value, depth + 1)
  if (Array.isArray(value)) {
    if (value.length > MOST_ITEMS) return value
    const items = value.map((item) => cleanValue(item, depth + 1))
    return items.some((item, index) => item !== value[index]) ? items : value
  }
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== null) return value
  const entries = Object.entries(value).map(([name, member]) => [name, cleanValue(member, depth + 1)] as const)
  return entries.some(([name, member]) => member !== (value as Members)[name]) ? Object.fromEntries(entries) : value
}

/** A text in which addresses have no user name and password: `https://ann:pw@host/a` becomes `https://***@host/a`. */
export function withoutCredentials(text: string): string {
  return text.replace(/:\/\/[^\s/?#"'`<>]*@/g, '://***@')
}
