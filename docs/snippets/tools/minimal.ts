import { defineTool } from 'thinharness'

export const now = defineTool({
  name: 'now',
  description: 'Get the current time in a time zone.',
  parameters: {
    type: 'object',
    properties: { zone: { type: 'string', description: 'An IANA name, such as Europe/Berlin.' } },
    required: ['zone'],
    additionalProperties: false,
  },
  annotations: { readOnly: true },
  handler: ({ zone }) => new Date().toLocaleString('en-GB', { timeZone: zone as string, timeZoneName: 'short' }),
})
