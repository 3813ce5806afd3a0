/** What a provider has told of one of its limits: how much is left, and how it comes back. */
export interface ToldLimit {
  readonly limit: number | null
  readonly remaining: number
  /** When it was told, in ms since 1970. */
  readonly at: number
  /** When the whole limit is there again, in ms since 1970. */
  readonly resetAt: number
}

/** Both limits, and until when nothing is to be sent. */
export interface ToldLimits {
  readonly requests: ToldLimit | null
  readonly tokens: ToldLimit | null
  /** In ms since 1970; null: no such wish. */
  readonly pausedUntil: number | null
}

type Headers = Readonly<Record<string, string>>

/**
 * What the headers of an answer say of limits, in the forms of OpenAI (also Groq and Azure: `x-ratelimit-remaining-requests`) and of
 * Anthropic (`anthropic-ratelimit-requests-remaining`). Of several limits on tokens the one with the least left counts.
 */
export function limitsIn(headers: Headers, now: number): ToldLimits {
  const wait = Number(headers['retry-after-ms'] ?? Number(headers['retry-after']) * 1000)
  const told = (kind: string): ToldLimit[] => {
    const of = (name: string): [string | undefined, string | undefined, string | undefined] => [
      headers[`${name}limit`],
      headers[`${name}remaining`],
      headers[`${name}reset`],
    ]
    const openai = ['limit', 'remaining', 'reset'].map((each) => headers[`x-ratelimit-${each}-${kind}`])
    return [openai, of(`anthropic-ratelimit-${kind}-`)].flatMap((given) => limitOf(given, now))
  }
  const tokens = ['tokens', 'input-tokens', 'output-tokens'].flatMap(told)
  return {
    requests: told('requests')[0] ?? null,
    tokens: tokens.reduce<ToldLimit | null>((least, each) => {
      return least === null || each.remaining < least.remaining ? each : least
    }, null),
    pausedUntil: Number.isFinite(wait) && wait > 0 ? now + wait : null,
  }
}

function limitOf([limit, remaining, reset]: readonly (string | undefined)[], now: number): ToldLimit[] {
  const left = Number(remaining ?? NaN)
  const resetAt = resetOf(reset ?? '', now)
  if (!Number.isFinite(left) || resetAt === null) return []
  const most = Number(limit ?? NaN)
  return [{ limit: Number.isFinite(most) ? most : null, remaining: left, at: now, resetAt }]
}

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** A time (`2026-01-27T12:00:30Z`), a duration (`6m0s`, `17ms`), or seconds. */
function resetOf(text: string, now: number): number | null {
  if (/^\d{4}-/.test(text)) return Number.isNaN(Date.parse(text)) ? null : Date.parse(text)
  if (/^\d+(\.\d+)?$/.test(text)) return now + Number(text) * 1_000
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d)/g)]
  if (parts.length === 0 || parts.map(([whole]) => whole).join('') !== text) return null
  return now + parts.reduce((sum, [, count, unit = '']) => sum + Number(count) * (UNITS[unit] ?? 0), 0)
}

/** How long until `needed` are left, in ms; 0: they are. What was used up comes back evenly until the reset. */
export function waitFor({ limit, remaining, at, resetAt }: ToldLimit, needed: number, now: number): number {
  if (remaining >= needed || resetAt <= now) return 0
  const missing = Math.min(needed, limit ?? needed) - remaining
  const used = limit === null ? 0 : limit - remaining
  const readyAt = used <= 0 ? resetAt : at + ((resetAt - at) * Math.min(missing, used)) / used
  return Math.max(0, Math.ceil(readyAt - now))
}
