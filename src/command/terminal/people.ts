import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type * as Clack from '@clack/prompts'
import type { Answer, JsonObject, JsonValue, PendingItem } from '../../index.js'
import { diffOf } from './diff.js'
import { askKnown } from './payloads.js'
import { oneLine, visible } from './terminal.js'
import type { Terminal } from './terminal.js'

/** Lines of arguments and previews that are shown before `v` shows all. */
const FEW_LINES = 12

type Prompts = typeof Clack

/** Asks a person in the terminal about all items that wait. Null: the person has stopped, and the run stays as it is. */
export async function askPeople(items: readonly PendingItem[], terminal: Terminal): Promise<readonly Answer[] | null> {
  const prompts = await import('@clack/prompts')
  const answers: Answer[] = []
  for (const item of items) {
    const answer = await (item.kind === 'approval' ? askApproval : askQuestion)(item, terminal, prompts)
    if (answer === null) return null
    answers.push(answer)
  }
  return answers
}

/** `y` once, `n` with a reason, `e` edits the arguments, `v` shows all, `s` stops. Enter alone decides nothing. */
async function askApproval(item: PendingItem, terminal: Terminal, prompts: Prompts): Promise<Answer | null> {
  const { callId } = item
  showItem(item, terminal, FEW_LINES)
  for (;;) {
    const key = await prompts.text({
      ...terminal.questions,
      message: `${item.toolName}: y allow · n reject · e edit · v show all · s stop`,
      validate: (value) => (/^[ynevs]$/i.test(value?.trim() ?? '') ? undefined : 'Type one of y, n, e, v, s.'),
    })
    if (prompts.isCancel(key)) return null
    switch (key.trim().toLowerCase()) {
      case 'y':
        return { callId, approved: true, by: personOf(terminal) }
      case 'n': {
        const reason = await prompts.text({
          ...terminal.questions,
          message: 'Why not? The model reads it.',
          placeholder: 'optional',
        })
        if (prompts.isCancel(reason)) return null
        const said = (reason as string | undefined) ?? ''
        return { callId, approved: false, ...(said !== '' && { reason: said }), by: personOf(terminal) }
      }
      case 'e': {
        const edited = editedJson(item.arguments, terminal)
        if (isObject(edited)) return { callId, approved: true, editedArguments: edited, by: personOf(terminal) }
        terminal.say('The arguments were not changed: expected a JSON object.')
        break
      }
      case 'v':
        showItem(item, terminal, Infinity)
        break
      default:
        return null
    }
  }
}

function showItem(item: PendingItem, terminal: Terminal, most: number): void {
  const head =
    `${item.toolName} ${typeof item.decision?.rule === 'string' ? `(rule ${item.decision.rule})` : ''}`.trim()
  terminal.say(terminal.paint('bold', oneLine(head)))
  for (const source of sourcesOf(item))
    terminal.say(terminal.paint('yellow', `  contains content from ${oneLine(source)}`))
  const preview = typeof item.payload === 'string' ? item.payload : textInPayload(item.payload)
  const diff = preview ?? diffOf(item.toolName, item.arguments)
  const lines = visible(diff ?? pretty(item.arguments)).split('\n')
  for (const line of lines.slice(0, most)) terminal.say(`  ${paintedDiff(line, terminal)}`)
  if (lines.length > most) terminal.say(`  … ${lines.length - most} more lines: v shows all`)
}

function sourcesOf({ provenance = [] }: PendingItem): readonly string[] {
  return provenance.map(({ source }) => [source.kind, source.name].filter(Boolean).join(' '))
}

function textInPayload(payload: JsonValue | undefined): string | null {
  if (!isObject(payload)) return payload === undefined ? null : JSON.stringify(payload, null, 2)
  const diff = payload['diff'] ?? payload['text']
  return typeof diff === 'string' ? diff : JSON.stringify(payload, null, 2)
}

function paintedDiff(line: string, terminal: Terminal): string {
  if (line.startsWith('+')) return terminal.paint('green', line)
  return line.startsWith('-') ? terminal.paint('red', line) : line
}

/** By the schema of the answer: text, number, yes or no, one of, several of; others as JSON in the editor. */
async function askQuestion(item: PendingItem, terminal: Terminal, prompts: Prompts): Promise<Answer | null> {
  const { callId, answerSchema = {}, payload } = item
  const message = typeof payload === 'string' ? payload : (textInPayload(payload) ?? item.toolName)
  const asking = { terminal, prompts }
  const answer =
    item.kind === 'unknown_outcome'
      ? await askOutcome(item, terminal, prompts)
      : await (askKnown(payload, asking) ?? askValue(oneLine(message), answerSchema, asking))
  return answer === undefined ? null : { callId, answer, by: personOf(terminal) }
}

async function askOutcome(item: PendingItem, terminal: Terminal, prompts: Prompts): Promise<JsonValue | undefined> {
  showItem(item, terminal, FEW_LINES)
  const outcome = await prompts.select({
    ...terminal.questions,
    message: 'The process ended during this call. What happened?',
    options: [
      { value: 'happened', label: 'it took effect' },
      { value: 'did_not_happen', label: 'it did not, and is not to be made' },
      { value: 'run_again', label: 'run it again' },
    ],
  })
  return prompts.isCancel(outcome) ? undefined : { outcome }
}

interface Asking {
  readonly terminal: Terminal
  readonly prompts: Prompts
}

async function askValue(
  message: string,
  schema: JsonObject,
  { terminal, prompts }: Asking,
): Promise<JsonValue | undefined> {
  const kept = <T extends JsonValue>(value: T | symbol): T | undefined =>
    prompts.isCancel(value) ? undefined : (value as T)
  const choices = choicesIn(schema)
  if (choices !== null)
    return kept(await prompts.select({ ...terminal.questions, message, options: optionsOf(choices) }))
  const several = schema['type'] === 'array' && isObject(schema['items']) ? choicesIn(schema['items']) : null
  if (several !== null)
    return kept(
      await prompts.multiselect({ ...terminal.questions, message, options: optionsOf(several), required: false }),
    )
  const { type } = schema
  switch (typeof type === 'string' ? type : '') {
    case 'boolean':
      return kept(await prompts.confirm({ ...terminal.questions, message }))
    case 'string':
      return kept(
        await prompts.text({
          ...terminal.questions,
          message,
        }),
      )
    case 'number':
    case 'integer': {
      const isFit = (text = ''): boolean =>
        text.trim() !== '' &&
        (schema['type'] === 'integer' ? Number.isInteger(Number(text)) : Number.isFinite(Number(text)))
      const text = await prompts.text({
        ...terminal.questions,
        message,
        validate: (value) =>
          isFit(value) ? undefined : `Type a ${schema['type'] === 'integer' ? 'whole ' : ''}number.`,
      })
      return prompts.isCancel(text) ? undefined : Number(text)
    }
    default:
      terminal.say(message)
      return editedJson('null', terminal, schema)
  }
}

function choicesIn(schema: JsonObject): readonly JsonValue[] | null {
  const { enum: choices } = schema
  return Array.isArray(choices) && choices.length > 0 ? choices : null
}

function optionsOf(values: readonly JsonValue[]): { value: JsonValue; label: string }[] {
  return values.map((value) => ({ value, label: typeof value === 'string' ? value : JSON.stringify(value) }))
}

/** The value as a person has changed it in the editor; undefined if it is no JSON. */
function editedJson(text: string, terminal: Terminal, schema?: JsonObject): JsonValue | undefined {
  const folder = mkdtempSync(join(tmpdir(), 'thinharness-'))
  try {
    const path = join(folder, 'value.json')
    const comment = schema === undefined ? '' : `// ${JSON.stringify(schema)}\n`
    writeFileSync(path, `${comment}${pretty(text)}\n`, { mode: 0o600 })
    const [program = 'vi', ...args] = (terminal.env['VISUAL'] ?? terminal.env['EDITOR'] ?? 'vi').split(' ')
    const { status } = spawnSync(program, [...args, path], { stdio: 'inherit' })
    if (status !== 0) return undefined
    return JSON.parse(readFileSync(path, 'utf8').replace(/^\/\/.*\n/, '')) as JsonValue
  } catch {
    return undefined
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function pretty(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json), null, 2)
  } catch {
    return json
  }
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function personOf({ env }: Terminal): string {
  return env['USER'] ?? env['USERNAME'] ?? 'terminal'
}
