import { invalidArguments, isPayload, outputMetadata } from './result.js'
import type { Answer } from '#core/state/answers.js'
import { defineTool } from '#core/tools/define-tool.js'
import { ToolResult } from '#core/tools/tool-result.js'
import type { ToolSpec, ToolContext, ToolReach } from '#core/tools/tool-spec.js'
import type { JsonSchema, JsonObject } from '#util/json.js'
import { isObject, objectSchema } from '#util/json.js'
import { homedir } from 'node:os'
import { isAbsolute, join, relative, resolve } from 'node:path'

/** A choice of a question. */
export interface QuestionOption {
  readonly label: string
  readonly description?: string
}

/** The payload of the pending item of `ask_user`, for pages. */
export interface UserQuestion {
  readonly kind: 'question'
  readonly question: string
  /** Empty: the answer is free text. */
  readonly options: readonly QuestionOption[]
  /** `text`: a string. `one`: the label of an option, or a string of the person's own. `several`: a list of these. */
  readonly selection: 'text' | 'one' | 'several'
}

interface QuestionArguments {
  readonly question: string
  readonly options?: readonly QuestionOption[]
  readonly selection?: 'one' | 'several'
}

const QUESTION_PARAMETERS: JsonSchema = objectSchema(['question'], {
  question: { type: 'string', minLength: 1 },
  options: {
    type: 'array',
    description: 'Two to four choices. Leave them out for a free answer.',
    items: objectSchema(['label'], { label: { type: 'string', minLength: 1 }, description: { type: 'string' } }),
  },
  selection: { enum: ['one', 'several'], description: 'How many options can be chosen. Default: one.' },
})

const TEXT: JsonSchema = { type: 'string', minLength: 1 }
const SEVERAL: JsonSchema = { anyOf: [TEXT, { type: 'array', items: TEXT }] }

/**
 * The tool `ask_user`: the model asks the person a question, with or without options, and the run waits for the answer. The
 * pending item has a `UserQuestion` as its payload.
 */
export function askUser(): ToolSpec {
  return defineTool({
    name: 'ask_user',
    description:
      'Ask the user one question and wait for the answer. Give options if there are a few likely answers; the user can always answer freely.',
    parameters: QUESTION_PARAMETERS,
    annotations: { readOnly: true, openWorld: false },
    handler: async (args, { ask }) => {
      const { question, options = [], selection } = args as unknown as QuestionArguments
      if (selection !== undefined && options.length === 0)
        return invalidArguments(
          '`selection` needs `options`. Give options, or leave `selection` out for a free answer.',
        )
      const payload: UserQuestion = {
        kind: 'question',
        question,
        options,
        selection: options.length === 0 ? 'text' : (selection ?? 'one'),
      }
      const answer = (await ask(payload, payload.selection === 'several' ? SEVERAL : TEXT)) as unknown as
        string | readonly string[]
      const answers = typeof answer === 'string' ? [answer] : answer
      return new ToolResult({ content: `The user answered: ${answers.join(', ')}`, metadata: { answer } })
    },
  })
}

/** The payload of the pending item of `submit_plan`, for pages. */
export interface SubmittedPlan {
  readonly kind: 'plan'
  readonly title: string
  /** Markdown. */
  readonly plan: string
  /** The mode that carries the plan out; null: the same. */
  readonly then: string | null
}

/** A person's answer to a plan. */
export interface PlanAnswer {
  readonly action: 'approved' | 'rejected'
  /** For the model. A plan that is rejected without any ends the run. */
  readonly feedback?: string
  /** Set by a session: the mode that the plan named when it was submitted, whatever the tool names when it is answered. */
  readonly then?: string
}

const PLAN_PARAMETERS: JsonSchema = objectSchema(['plan'], {
  title: { type: 'string', minLength: 1 },
  plan: { type: 'string', minLength: 1, description: 'The whole plan, as Markdown.' },
})

const PLAN_ANSWER: JsonSchema = objectSchema(['action'], {
  action: { enum: ['approved', 'rejected'] },
  feedback: { type: 'string' },
  then: { type: 'string' },
})

/** An answer with the mode that its plan named; any other answer as it is. */
export function withPlannedMode(answer: Answer, payload: unknown): Answer {
  if (!('answer' in answer) || !isObject(answer.answer) || !isPayload<SubmittedPlan>(payload, 'plan')) return answer
  return payload.then === null ? answer : { ...answer, answer: { ...answer.answer, then: payload.then } }
}

/** The run after an answered plan: `mode` to continue in, or null to end. */
export interface PlanOutcome {
  readonly mode: string | null
}

export const SUBMIT_PLAN = 'submit_plan'
const OUTCOME = 'plan_outcome'

/**
 * The tool `submit_plan`: the model shows a plan to the person, and the run waits for a `PlanAnswer`. An approved plan is carried
 * out in the same run; in a session, under the mode `then`. The pending item has a `SubmittedPlan` as its payload.
 */
export function submitPlan({ then }: { readonly then?: string | undefined } = {}): ToolSpec {
  return defineTool({
    name: SUBMIT_PLAN,
    description:
      'Show the user a complete plan and wait for approval before anything of it is done. It has to be the only call.',
    parameters: PLAN_PARAMETERS,
    annotations: { readOnly: true, openWorld: false },
    sequential: 'alone',
    handler: async (args, { ask }) => {
      const { plan, title = 'Plan' } = args as unknown as { readonly plan: string; readonly title?: string }
      const submitted: SubmittedPlan = { kind: 'plan', title, plan, then: then ?? null }
      const answer = (await ask(submitted, PLAN_ANSWER)) as unknown as PlanAnswer
      return planResult(submitted, answer)
    },
  })
}

function planResult({ title, ...plan }: SubmittedPlan, { action, feedback = '', ...answer }: PlanAnswer): ToolResult {
  const then = answer.then ?? plan.then
  const metadata: JsonObject = { submitted_plan: { title, action, ...(feedback !== '' && { feedback }) } }
  if (action === 'approved') {
    const note = feedback === '' ? '' : ` The user adds: ${feedback}`
    const next = then === null ? {} : { [OUTCOME]: { mode: then } }
    return new ToolResult({
      content: `The plan is approved. Carry it out now.${note}`,
      metadata: { ...metadata, ...next },
    })
  }
  if (feedback !== '') {
    const content = `The plan is not approved. The user says: ${feedback}\nRevise the plan and submit it again.`
    return new ToolResult({ content, metadata })
  }
  const content = 'The plan is not approved. Stop here and wait for the user.'
  return new ToolResult({ content, metadata: { ...metadata, [OUTCOME]: { mode: null } } })
}

/** The outcome of an answered plan, from the envelope's JSON text; null if the run continues as it is. */
export function planOutcome(output: string): PlanOutcome | null {
  const outcome = outputMetadata(output)[OUTCOME]
  if (!isObject(outcome)) return null
  return { mode: typeof outcome['mode'] === 'string' ? outcome['mode'] : null }
}

/** The payload of the pending item of `request_access`, for pages. Exactly one of `path`, `host`, `command` and `tool` is set. */
export interface AccessRequest {
  readonly kind: 'access'
  readonly reason: string
  /** A glob. */
  readonly path?: string
  readonly host?: string
  /** A shell command, as in the rules of a policy. */
  readonly command?: string
  readonly tool?: string
}

/** A person's answer to a request for access. */
export interface AccessAnswer {
  readonly approved: boolean
  /** For the model. */
  readonly reason?: string
}

type AccessSubject = Omit<AccessRequest, 'kind' | 'reason'>

const SUBJECTS = ['path', 'host', 'command', 'tool'] as const

const ACCESS_PARAMETERS: JsonSchema = objectSchema(['reason'], {
  path: { ...TEXT, description: 'A file or a folder with `/**`.' },
  host: { ...TEXT, description: 'A host name.' },
  command: { ...TEXT, description: 'A shell command: `git status`, or `git log *` with any further words.' },
  tool: { ...TEXT, description: 'The name of a tool.' },
  reason: { ...TEXT, description: 'Why it is needed, for the user.' },
})

const ACCESS_ANSWER: JsonSchema = objectSchema(['approved'], {
  approved: { type: 'boolean' },
  reason: { type: 'string' },
})

/**
 * The tool `request_access`: the model asks for a permission before it needs it. The pending item has an `AccessRequest` as its
 * payload, and its answer is an `AccessAnswer`. In a session, an approved request is a grant of the thread, which the `policy` of the
 * sessions applies. A request for something that no tool of the run could use, such as a folder outside its root, is refused at once.
 */
export function requestAccess(): ToolSpec {
  return defineTool({
    name: 'request_access',
    description:
      'Ask the user to allow a path, a host, a command or a tool for the rest of the conversation. Exactly one of them.',
    parameters: ACCESS_PARAMETERS,
    annotations: { readOnly: true, openWorld: false },
    sequential: true,
    handler: async (args, context) => {
      const { ask } = context
      const request = args as unknown as Omit<AccessRequest, 'kind'>
      const [subject, ...others] = SUBJECTS.filter((each) => request[each] !== undefined)
      if (subject === undefined || others.length > 0)
        return invalidArguments('Expected exactly one of `path`, `host`, `command` and `tool`.')
      if (!isInReach(request, context)) return outOfReach(subject, request[subject] ?? '')
      const payload: AccessRequest = { kind: 'access', ...request }
      const { approved, reason = '' } = (await ask({ ...payload }, ACCESS_ANSWER)) as unknown as AccessAnswer
      const note = reason === '' ? '' : ` The user says: ${reason}`
      return approved ? `Access is granted.${note}` : `Access is not granted.${note} Continue without it.`
    },
  })
}

function outOfReach(subject: string, named: string): ToolResult {
  const content = `No tool of this run can use the ${subject} ${JSON.stringify(named)}, whatever the user allows. Continue without it.`
  return new ToolResult({ ok: false, content, metadata: { error_type: 'OutOfReach' } })
}

/** The conditions of the grant that a request asks for. */
export function requestConditions(request: AccessRequest): AccessSubject {
  const { kind: _kind, reason: _reason, ...conditions } = request
  return conditions
}

/**
 * Whether a tool of the run could use what a request for access names, once it is allowed. A rule for a path or host never allows
 * a command, and a tool that does not say what it reaches could reach anything, unless its world is closed.
 */
function isInReach(request: AccessSubject, { tools, root }: ToolContext): boolean {
  if (tools === undefined) return true
  const { path, host, command, tool } = request
  const all = [...tools.values()]
  if (tool !== undefined) return tool.includes('*') || tools.has(tool)
  if (command !== undefined) return all.some((each) => mayReach(each, ({ programs = [] }) => programs.length > 0))
  const plain = all.filter(({ reach }) => (reach?.programs ?? []).length === 0)
  if (host !== undefined) return plain.some((each) => mayReach(each, ({ hosts = [] }) => hosts.some(hostFits(host))))
  const wanted = globFolder(path ?? '', root)
  const fits = (given: string): boolean => {
    const place = resolve(root, given)
    return isIn(place, wanted) || isIn(wanted, place)
  }
  return plain.some((each) => mayReach(each, ({ reads = [], writes = [] }) => [...reads, ...writes].some(fits)))
}

function mayReach({ reach, annotations }: ToolSpec, covers: (reach: ToolReach) => boolean): boolean {
  return reach === undefined ? annotations?.openWorld !== false : covers(reach)
}

function hostFits(host: string): (given: string) => boolean {
  const [name, wanted = name] = /^(?:\*\.)?(.*?)\.?$/.exec(host.toLowerCase()) ?? [host]
  return (given) => {
    const own = given.toLowerCase()
    return own === '*' || own === wanted || (own.startsWith('*.') && `.${wanted}`.endsWith(own.slice(1)))
  }
}

/** The folder or file that a glob begins with. */
function globFolder(glob: string, root: string): string {
  const fixed = /^[^*?[{]*/.exec(glob)?.[0] ?? ''
  const folder = fixed === glob ? glob : fixed.replace(/[^/]*$/, '')
  return /^~(?=$|\/)/.test(folder) ? join(homedir(), folder.slice(1)) : resolve(root, folder)
}

function isIn(folder: string, path: string): boolean {
  const way = relative(folder, path)
  return way !== '..' && !/^\.\.[\\/]/.test(way) && !isAbsolute(way)
}
