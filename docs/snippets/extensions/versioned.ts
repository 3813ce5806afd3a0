import { Harness, defineExtension } from 'thinharness'

/** Where a team keeps the versions of its instructions. */
const store = { current: async () => '7', text: async (version: string) => `You answer for the shop (${version}).` }

const versioned = defineExtension({
  name: 'versioned',
  forRun: async ({ labels }) => {
    const version = labels['prompt.shop'] ?? (await store.current())
    return { instructions: await store.text(version), labels: { 'prompt.shop': version } }
  },
})

export const harness = new Harness({ model: 'openai:gpt-5.5', use: [versioned] })
