import { invalidOptions, parse } from '#contracts/parse.js'
import type { InferSchema, Schema } from '#schema/schema.js'
import { isObject } from '#util/json.js'
import type { JsonSchema, JsonValue } from '#util/json.js'
import { didYouMean } from '#util/suggest.js'
import { Mismatch, shownValue } from '#util/mismatch.js'
import {
  boolean,
  either,
  functionOf,
  integer,
  jsonObject,
  leaf,
  list,
  matching,
  milliseconds,
  object,
  oneOf,
  optional,
  partial,
  record,
  string,
} from '#util/validate.js'
import type { ApprovalContext, ToolContext, ToolSpec } from './tool-spec.js'
import { isList, isSchema, schemasIn } from '#schema/subschemas.js'

/** A tool as its author defines it; `args` are typed by `parameters`. */
export interface ToolOptions<S extends Schema, Deps = unknown> extends SharedOptions {
  /**
   * Arguments of the tool: zod (from 4.2) or any Standard Schema that can emit JSON Schema, or a JSON Schema document,
   * which is passed on unchanged. An object at the root.
   */
  readonly parameters: S
  /**
   * True if a person must agree to a call; as a function, decided from the parsed arguments. A policy may decide otherwise;
   * `always`: it can only deny. Default false.
   */
  readonly requiresApproval?:
    boolean | 'always' | ((args: InferSchema<S>, context: ApprovalContext) => boolean | Promise<boolean>) | undefined
  /** Shown to a person who decides about the call, in addition to its arguments. */
  readonly preview?: ((args: InferSchema<S>, context: ApprovalContext) => JsonValue | Promise<JsonValue>) | undefined
  /**
   * The call that a call of this tool stands for, such as `call_tool` for the tool that its arguments name: see `ToolSpec.resolve`.
   * Default: every call stands for itself.
   */
  readonly resolve?: ((args: InferSchema<S>) => ReturnType<NonNullable<ToolSpec['resolve']>>) | undefined
  /**
   * Runs the tool. The model reads a returned string unchanged; a `ToolResult` has more fields; any other value becomes
   * JSON. A thrown error becomes a failed result; a `ModelRetry` asks the model to try again.
   */
  readonly handler: (args: InferSchema<S>, context: ToolContext<Deps>) => unknown
}

type SharedOptions = Pick<
  ToolSpec,
  | 'name'
  | 'description'
  | 'annotations'
  | 'sequential'
  | 'onUnknownOutcome'
  | 'reconcile'
  | 'maxRetries'
  | 'timeoutMs'
  | 'maxOutputChars'
  | 'instructions'
  | 'aliases'
  | 'pathFields'
  | 'reach'
  | 'strict'
  | 'examples'
  | 'metadata'
>

/** A copy of the options, for the loop: the arguments of its functions are JSON objects. Throws `invalid_options`. */
export function parseToolOptions<S extends Schema, Deps>(tool: ToolOptions<S, Deps>): ParsedTool<Deps> {
  const given: unknown = tool
  const name = toolName.read(isObject(given) ? given['name'] : undefined)
  // The functions get arguments that the schema lets through, of whatever type that is.
  return parse(OPTIONS, given, name instanceof Mismatch ? 'a tool' : `tool \`${name}\``) as unknown as ParsedTool<Deps>
}

type ParsedTool<Deps> = ToolOptions<JsonSchema, Deps> & { readonly parameters: Schema }

const toolName = matching(/^[A-Za-z0-9_-]{1,64}$/, '1 to 64 letters, digits, `_` or `-`')
const names = list(string, 'a list of names')

const OPTIONS = object<ToolOptions<Schema>>({
  name: toolName,
  description: string,
  // Its kind is checked together with the schema.
  parameters: leaf<Schema>('a schema', () => true),
  handler: functionOf(),
  annotations: optional(partial({ readOnly: boolean, destructive: boolean, idempotent: boolean, openWorld: boolean })),
  sequential: optional(oneOf(true, false, 'alone')),
  requiresApproval: optional(either(boolean, oneOf('always'), functionOf<Exclude<ApprovalRule, boolean | 'always'>>())),
  onUnknownOutcome: optional(oneOf('retry', 'report', 'pause')),
  reconcile: optional(functionOf()),
  preview: optional(functionOf()),
  resolve: optional(functionOf()),
  maxRetries: optional(integer(0)),
  timeoutMs: optional(milliseconds),
  maxOutputChars: optional(integer(1)),
  instructions: optional(string),
  aliases: optional(record(string)),
  pathFields: optional(names),
  reach: optional(partial({ reads: names, writes: names, hosts: names, programs: names, secrets: names })),
  strict: optional(boolean),
  examples: optional(list(jsonObject, 'a list of arguments')),
  metadata: optional(jsonObject),
})

type ApprovalRule = NonNullable<ToolOptions<Schema>['requiresApproval']>

/** Throws `invalid_options` for parameters that are no object at their root: no provider takes such a tool. */
export function checkParameters({ type, anyOf, oneOf, allOf }: JsonSchema, where: string): void {
  const isJoined = type === undefined && [anyOf, oneOf, allOf].some((members) => members !== undefined)
  if (!isJoined && (type === undefined || type === 'object' || (isList(type) && type.includes('object')))) return
  const got = isJoined ? 'several schemas joined: put them into a field' : shownValue(type)
  throw invalidOptions(`Expected ${where} to be an object at the root, got ${got}.`)
}

/** Throws `invalid_options` for aliases and path fields that name no field: they would never apply. */
export function checkFieldNames(
  { name, aliases, pathFields }: Pick<ToolSpec, 'name' | 'aliases' | 'pathFields'>,
  parameters: JsonSchema,
): void {
  if (aliases === undefined && pathFields === undefined) return
  const known = fieldNames(parameters)
  const named = [
    ...Object.values(aliases ?? {}).map((field) => ({ option: 'aliases', field })),
    ...(pathFields ?? []).map((field) => ({ option: 'pathFields', field })),
  ]
  for (const { option, field } of named) {
    if (known.has(field)) continue
    const hint = didYouMean(field, known)
    throw invalidOptions(
      `Expected \`${option}\` of tool \`${name}\` to name fields of its parameters, got \`${field}\`.${hint}`,
    )
  }
}

function fieldNames(parameters: JsonSchema): Set<string> {
  const names = new Set<string>()
  for (const { properties } of schemasIn(parameters)) {
    for (const field of Object.keys(isSchema(properties) ? properties : {})) names.add(field)
  }
  return names
}
