import { setTimeout as sleep } from 'node:timers/promises'
import { defineTool, Harness } from 'thinharness'
import type { LogStore } from 'thinharness'
import { z } from 'zod'
import type { Deliveries } from './deliveries.js'

export interface ReporterOptions {
  readonly log: LogStore
  readonly deliveries: Deliveries
  /** The name of the process, for the table. */
  readonly worker: string
}

/** Reads the numbers of a customer, and delivers a report. */
export function reporter({ log, deliveries, worker }: ReporterOptions): Harness {
  const readNumbers = defineTool({
    name: 'read_numbers',
    description: 'The sales of a customer in this month.',
    parameters: z.object({ customer: z.string() }),
    annotations: { readOnly: true },
    handler: async ({ customer }, { signal }) => {
      await sleep(50, undefined, { signal })
      return { customer, sold: customer.length * 17, returned: customer.length }
    },
  })
  const deliver = defineTool({
    name: 'deliver_report',
    description: 'Deliver a report to a customer.',
    parameters: z.object({ report: z.string().describe('Its number.'), customer: z.string(), text: z.string() }),
    // After a crash in the middle the call is made again, with the same key: the report is delivered once.
    annotations: { idempotent: true },
    handler: async ({ report, customer }, { idempotencyKey: key, signal }) => {
      await sleep(50, undefined, { signal })
      await deliveries.add({ key, report, customer, worker })
      await sleep(50, undefined, { signal })
      return `Report ${report} is with ${customer}.`
    },
  })
  return new Harness({
    log,
    builtinTools: [],
    tools: [readNumbers, deliver],
    instructions: 'You deliver monthly reports. Read the numbers, then deliver a report of two sentences.',
    limits: { modelRequests: 8 },
  })
}
