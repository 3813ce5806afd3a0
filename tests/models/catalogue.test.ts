import { describe, expect, test } from 'vitest'
import { Harness } from 'thinharness'
import { catalogue } from 'thinharness/models'

describe('the catalogue', () => {
  test('has what is known of the models that a reference can name', () => {
    const all = catalogue({ env: { ANTHROPIC_API_KEY: 'k', OPENAI_API_KEY: ' ' } })
    const of = (ref: string): unknown => all.find((each) => each.ref === ref)
    expect(of('anthropic:claude-sonnet-5')).toMatchObject({
      ...{ provider: 'anthropic', id: 'claude-sonnet-5', contextTokens: 1_000_000, hasKey: true },
      price: { inputPerMillion: 2, outputPerMillion: 10 },
    })
    expect(of('openai:gpt-4.1')).toMatchObject({ reasoning: false, hasKey: false, price: { inputPerMillion: 2 } })
    expect(of('openai:gpt-5.5')).toMatchObject({ contextTokens: expect.any(Number) as number })
    expect(new Set(all.map(({ provider }) => provider))).toEqual(
      new Set(['anthropic', 'openai', 'google', 'openrouter']),
    )
  })

  test('names only models that a harness takes, each once, and none for images, sound or vectors', () => {
    const all = catalogue({ env: {} })
    expect(new Set(all.map(({ ref }) => ref)).size).toBe(all.length)
    expect(all.length).toBeGreaterThan(100)
    for (const { ref, hasKey } of all) {
      expect(() => new Harness({ model: ref })).not.toThrow()
      expect(hasKey).toBe(false)
    }
    const others = /embedding|realtime|transcribe|tts|dall|moderation|whisper/
    expect(all.filter(({ provider, id }) => provider !== 'openrouter' && others.test(id))).toEqual([])
  })

  test('finds keys in the environment of the process by default', () => {
    const before = process.env['GEMINI_API_KEY']
    try {
      process.env['GEMINI_API_KEY'] = 'k'
      const google = catalogue().filter(({ provider }) => provider === 'google')
      expect(google.length).toBeGreaterThan(3)
      expect(google.every(({ hasKey }) => hasKey)).toBe(true)
    } finally {
      if (before === undefined) delete process.env['GEMINI_API_KEY']
      else process.env['GEMINI_API_KEY'] = before
    }
  })
})
