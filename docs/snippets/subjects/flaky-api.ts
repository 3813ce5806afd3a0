import { setTimeout as pause } from 'node:timers/promises'
import { defineTool, ToolResult } from 'thinharness'
import { z } from 'zod'

/** A response; asked for again after a failure of the network, a 429 or a 5xx, at most `tries` times in all. */
async function fetchWithRetries(url: string, signal: AbortSignal, tries = 3): Promise<Response> {
  for (let attempt = 1; ; attempt++) {
    const isLast = attempt === tries
    const response = await fetch(url, { signal }).catch((error: unknown) => {
      if (isLast || signal.aborted) throw error
      return null
    })
    const isFinal = response !== null && response.status !== 429 && response.status < 500
    if (response !== null && (isFinal || isLast)) return response
    // 200 ms, 400 ms, …
    await pause(100 * 2 ** attempt, undefined, { signal })
  }
}

export const getWeather = defineTool({
  name: 'get_weather',
  description: 'Get the weather of a city.',
  parameters: z.object({ city: z.string() }),
  annotations: { readOnly: true },
  timeoutMs: 20_000,
  async handler({ city }, { signal }) {
    const response = await fetchWithRetries(`https://weather.example.com/${encodeURIComponent(city)}`, signal)
    if (response.ok) return response.text()
    return new ToolResult({ ok: false, content: `The weather service answered ${response.status}.` })
  },
})
