import { Harness, defineExtension } from 'thinharness'

/** Changes nothing outside office hours, and asks a person about the third write of a run. */
const officeHours = defineExtension({
  name: 'office-hours',
  notices: () => [
    { name: 'hours', text: isOpen() ? 'The office is open.' : 'The office is closed: files are read-only.' },
  ],
  forRun: ({ recorded, record }) => {
    let writes = recorded.length
    return {
      policy: (_call, spec) => {
        if (spec.annotations?.readOnly === true) return 'allow'
        if (!isOpen()) return { decision: 'deny', reason: 'The office is closed.', rule: 'hours' }
        return writes < 2 ? 'allow' : 'ask'
      },
      hooks: [
        {
          event: 'after_tool_call',
          tools: ['write', 'edit'],
          handler: async ({ toolName }) => {
            writes += 1
            await record(toolName)
            return undefined
          },
        },
      ],
    }
  },
})

await using harness = new Harness({ model: 'anthropic:claude-sonnet-5', root: './notes', use: [officeHours] })
console.log((await harness.run('Tidy up.')).usage)

function isOpen(): boolean {
  const hour = new Date().getHours()
  return hour >= 9 && hour < 17
}
