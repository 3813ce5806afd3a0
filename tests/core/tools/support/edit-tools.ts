import { z } from 'zod'
import { checkArguments } from '#core/tools/boundary/check-arguments.js'
import type { CheckedArguments } from '#core/tools/boundary/check-arguments.js'
import { defineTool } from '#core/tools/define-tool.js'
import type { ToolSpec } from '#core/tools/tool-spec.js'
import type { JsonSchema } from '#util/json.js'

const editSchema = {
  type: 'object',
  properties: {
    path: { type: 'string' },
    edits: {
      type: 'array',
      items: {
        type: 'object',
        properties: {
          path: { type: 'string' },
          old_string: { type: 'string' },
          new_string: { type: 'string' },
          replace_all: { type: ['boolean', 'null'] },
          expected_replacements: { anyOf: [{ type: 'integer', minimum: 1 }, { type: 'null' }] },
        },
        additionalProperties: false,
      },
    },
    command: { type: 'string' },
    limit: { type: 'integer' },
    ratio: { type: 'number' },
    content: { type: 'string' },
    flag: { type: 'boolean' },
    either: { anyOf: [{ type: 'boolean' }, { type: 'string' }] },
    paths: { type: 'array', items: { type: 'string' } },
    labels: { type: 'object', additionalProperties: { type: 'string' } },
    child: { $ref: '#/$defs/child' },
  },
  additionalProperties: false,
  $defs: { child: { type: 'object', properties: { is_open: { type: 'boolean' }, child: { $ref: '#/$defs/child' } } } },
} satisfies JsonSchema

const names = {
  name: 'edit',
  description: 'Edits.',
  aliases: { all: 'replace_all', file: 'path' },
  pathFields: ['path', 'paths'],
}
/** A tool that echoes its arguments, by a JSON Schema. */
export const raw = defineTool({ ...names, parameters: editSchema, handler: (args) => args })

const typedChild: z.ZodType = z.object({
  is_open: z.boolean().optional(),
  get child() {
    return typedChild.optional()
  },
})
/** The same by a typed schema. */
const typed = defineTool({
  ...names,
  parameters: z.object({
    path: z.string().optional(),
    edits: z
      .array(
        z.strictObject({
          path: z.string().optional(),
          old_string: z.string().optional(),
          new_string: z.string().optional(),
          replace_all: z.boolean().nullish(),
          expected_replacements: z.int().min(1).nullish(),
        }),
      )
      .optional(),
    command: z.string().optional(),
    limit: z.int().optional(),
    ratio: z.number().optional(),
    content: z.string().optional(),
    flag: z.boolean().optional(),
    either: z.union([z.boolean(), z.string()]).optional(),
    paths: z.array(z.string()).optional(),
    labels: z.record(z.string(), z.string()).optional(),
    child: typedChild.optional(),
  }),
  handler: (args) => args,
})

export const tools: [string, ToolSpec][] = [
  ['a JSON Schema', raw],
  ['a typed schema', typed],
]

export async function check(spec: ToolSpec, args: unknown): Promise<CheckedArguments> {
  return checkArguments(spec, typeof args === 'string' ? args : JSON.stringify(args))
}
