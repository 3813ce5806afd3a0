import { readFile } from 'node:fs/promises'
import { embedding } from 'thinharness/providers'
import type { Passages } from './retrieval.js'

type Embed = (texts: readonly string[]) => Promise<readonly (readonly number[])[]>

/** Embeds the paragraphs of some files, and finds the nearest ones. In memory: enough for some thousand paragraphs. */
export async function indexOf(
  paths: readonly string[],
  embed: Embed = embedding('openai:text-embedding-3-small'),
): Promise<Passages> {
  const chunks: { text: string; url: string }[] = []
  for (const path of paths) {
    const paragraphs = (await readFile(path, 'utf8')).split(/\n\s*\n/)
    for (const text of paragraphs) if (text.trim() !== '') chunks.push({ text: text.trim(), url: path })
  }
  const vectors = await embed(chunks.map(({ text }) => text))
  const rows = chunks.map((chunk, at) => ({ ...chunk, vector: vectors[at] ?? [] }))
  return {
    nearest: (vector, count) => {
      const scored = rows.map(({ text, url, vector: other }) => ({ text, url, score: dot(vector, other) }))
      scored.sort((a, b) => b.score - a.score)
      return Promise.resolve(scored.slice(0, count).map(({ text, url }) => ({ text, url })))
    },
  }
}

/** The cosine of two vectors of length 1, which these models give. */
function dot(a: readonly number[], b: readonly number[]): number {
  return a.reduce((sum, value, at) => sum + value * (b[at] ?? 0), 0)
}
