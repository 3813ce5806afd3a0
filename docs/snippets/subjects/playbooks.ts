import { defineTool } from 'thinharness'
import type { ToolSpec } from 'thinharness'
import { z } from 'zod'

/** A row of your database. */
export interface Playbook {
  readonly name: string
  readonly description: string
  readonly text: string
}

/** The model sees the names and descriptions, and reads a text when a task needs it. */
export function playbookTool(playbooks: readonly Playbook[]): ToolSpec {
  const texts = new Map(playbooks.map(({ name, text }) => [name, text]))
  const list = playbooks.map(({ name, description }) => `- ${name}: ${description}`)
  return defineTool({
    name: 'read_playbook',
    description: ['Read how a task is done, before you begin it.', ...list].join('\n'),
    parameters: z.object({ name: z.enum([...texts.keys()]) }),
    annotations: { readOnly: true },
    handler: ({ name }) => texts.get(name) ?? 'There is no such playbook.',
  })
}
