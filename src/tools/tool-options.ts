import { HarnessError } from '../contracts/errors.js'
import { isObject } from '../util/json.js'
import type { JsonSchema } from '../util/json.js'
import { didYouMean } from '../util/suggest.js'
import { unknownKey } from '../util/unknown-key.js'
import { plainJsonText } from '../util/plain-json.js'
import type { ToolSpec } from './spec.js'
import { isSchema, schemasIn } from '../schema/subschemas.js'

/** Refuses options of `defineTool` that are unknown or of a wrong kind. */
export function checkToolOptions(tool: unknown): void {
  if (!isObject(tool)) throw invalid(`Expected \`defineTool\` to be given an object, got ${shown(tool)}.`)
  const { name } = tool
  if (typeof name !== 'string' || !/^[A-Za-z0-9_-]{1,64}$/.test(name)) {
    throw invalid(`Expected \`name\` of a tool to be 1 to 64 letters, digits, \`_\` or \`-\`, got ${shown(name)}.`)
  }
  const unknown = unknownKey(tool, Object.keys(RULES), `option of tool \`${name}\``)
  if (unknown !== undefined) throw invalid(unknown)
  for (const [option, { expected, fits, required }] of Object.entries(RULES)) {
    const value = tool[option]
    if (fits(value) || (value === undefined && required !== true)) continue
    throw invalid(`Expected \`${option}\` of tool \`${name}\` to be ${expected}, got ${shown(value)}.`)
  }
  checkAnnotations(name, tool['annotations'])
}

/** Refuses parameters that are no object at their root: no provider takes such a tool. */
export function checkParameters({ type, anyOf, oneOf, allOf }: JsonSchema, where: string): void {
  const isJoined = type === undefined && [anyOf, oneOf, allOf].some((members) => members !== undefined)
  if (!isJoined && (type === undefined || type === 'object')) return
  const got = isJoined ? 'several schemas joined: put them into a field' : shown(type)
  throw invalid(`Expected ${where} to be an object at the root, got ${got}.`)
}

/** Refuses aliases and path fields that name no field: they would never apply. */
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
    throw invalid(
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

interface Rule {
  readonly expected: string
  readonly fits: (value: unknown) => boolean
  readonly required?: true
}

const isText = (value: unknown): boolean => typeof value === 'string'
const isFlag = (value: unknown): boolean => typeof value === 'boolean'
const isFunction = (value: unknown): boolean => typeof value === 'function'
const isWhole = (value: unknown, least: number): boolean => Number.isSafeInteger(value) && Number(value) >= least

/** Longest wait that a timer of the platform knows, in ms. */
const LONGEST_TIMEOUT_MS = 2_147_483_647

const RULES: Readonly<Record<string, Rule>> = {
  name: { expected: 'a name', fits: isText, required: true },
  description: { expected: 'a text', fits: isText, required: true },
  // Its kind is checked with the schema, which knows more to say.
  parameters: { expected: 'a schema', fits: () => true },
  handler: { expected: 'a function', fits: isFunction, required: true },
  annotations: { expected: 'an object', fits: isObject },
  sequential: { expected: 'a boolean', fits: isFlag },
  requiresApproval: { expected: 'a boolean or a function', fits: (value) => isFlag(value) || isFunction(value) },
  onUnknownOutcome: {
    expected: '`retry`, `report` or `pause`',
    fits: (value) => value === 'retry' || value === 'report' || value === 'pause',
  },
  reconcile: { expected: 'a function', fits: isFunction },
  preview: { expected: 'a function', fits: isFunction },
  maxRetries: { expected: 'a whole number from 0 up', fits: (value) => isWhole(value, 0) },
  timeoutMs: {
    expected: `a whole number of milliseconds from 1 to ${LONGEST_TIMEOUT_MS}`,
    fits: (value) => isWhole(value, 1) && Number(value) <= LONGEST_TIMEOUT_MS,
  },
  maxOutputChars: { expected: 'a whole number of characters from 1 up', fits: (value) => isWhole(value, 1) },
  instructions: { expected: 'a text', fits: isText },
  aliases: {
    expected: 'an object of field names',
    fits: (value) => isObject(value) && Object.values(value).every(isText),
  },
  pathFields: { expected: 'a list of field names', fits: (value) => Array.isArray(value) && value.every(isText) },
  reach: { expected: 'an object of lists', fits: isReach },
  metadata: { expected: 'an object', fits: isObject },
}

const REACHED = ['reads', 'writes', 'hosts', 'programs', 'secrets']

function isReach(value: unknown): boolean {
  return (
    isObject(value) &&
    Object.entries(value).every(
      ([kind, names]) =>
        REACHED.includes(kind) && (names === undefined || (Array.isArray(names) && names.every(isText))),
    )
  )
}

const HINTS = ['readOnly', 'destructive', 'idempotent', 'openWorld']

function checkAnnotations(name: string, annotations: unknown): void {
  if (!isObject(annotations)) return
  const unknown = unknownKey(annotations, HINTS, `annotation of tool \`${name}\``)
  if (unknown !== undefined) throw invalid(unknown)
  for (const [hint, value] of Object.entries(annotations)) {
    if (value === undefined || isFlag(value)) continue
    throw invalid(`Expected \`annotations.${hint}\` of tool \`${name}\` to be a boolean, got ${shown(value)}.`)
  }
}

function shown(value: unknown): string {
  return value === undefined ? 'nothing' : plainJsonText(value).slice(0, 100)
}

function invalid(message: string): HarnessError {
  return new HarnessError('invalid_options', message)
}
