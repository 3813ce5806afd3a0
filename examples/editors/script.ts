import type { ProviderRequest, Reply } from 'thinharness/testing'

/** The scripted replies for use without a model. */
export function answer({ turn }: ProviderRequest): Reply {
  if (turn === 0) return { calls: [{ name: 'read', arguments: { path: 'greeting.txt' } }] }
  if (turn === 1) {
    const edits = [{ path: 'greeting.txt', old_string: 'wolrd', new_string: 'world' }]
    return { calls: [{ name: 'edit', arguments: { edits } }] }
  }
  return { text: 'It says "Hello, world!" now.' }
}
