import { defineExtension, Harness } from 'thinharness'

const KEY = /sk-[A-Za-z0-9]{8,}/g
const START_OF_KEY = /(?:s|sk|sk-[A-Za-z0-9]*)$/

export const maskKeys = defineExtension({
  name: 'mask-keys',
  output() {
    const held = new Map<string, string>()
    return {
      text(piece, partId) {
        const text = (held.get(partId) ?? '') + piece
        const start = START_OF_KEY.exec(text)?.index ?? text.length
        held.set(partId, text.slice(start))
        return text.slice(0, start).replaceAll(KEY, '[key]')
      },
      end: (partId) => (held.get(partId) ?? '').replaceAll(KEY, '[key]'),
    }
  },
})

await using harness = new Harness({ model: 'anthropic:claude-sonnet-5', use: [maskKeys] })
for await (const event of harness.stream('Which keys are in use?'))
  if (event.kind === 'text_delta') process.stdout.write(event.text)
