import type { ToolSpec } from '#core/tools/tool-spec.js'
import { schemasIn } from '#schema/subschemas.js'
import { isObject } from '#util/json.js'

/** The texts of a tool by which it is found. */
export interface ToolText {
  /** Its name, and its title if its metadata has one. */
  readonly name: string
  readonly description: string
  /** The names of its parameters, at any depth. */
  readonly parameters: string
  /** The descriptions of its parameters, and the values that they can have. */
  readonly details: string
}

/** The texts of a tool, read from its definition. */
export function textOfTool({ name, description, parameters, metadata }: ToolSpec): ToolText {
  const names: string[] = []
  const details: string[] = []
  for (const { properties, description: of, enum: values, title } of schemasIn(parameters)) {
    if (isObject(properties)) names.push(...Object.keys(properties))
    for (const text of [title, of, ...(Array.isArray(values) ? (values as readonly unknown[]) : [])])
      if (typeof text === 'string') details.push(text)
  }
  const title = metadata?.['title']
  return {
    name: typeof title === 'string' ? `${name} ${title}` : name,
    description,
    parameters: names.join(' '),
    details: details.join(' '),
  }
}
