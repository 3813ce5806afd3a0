import { defineTool } from '#core/tools/define.js'
import type { JsonSchema } from '#util/json.js'
import type { ToolSpec } from '#core/tools/tool-spec.js'
import { invalidArguments } from './result.js'

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

const SUBJECTS = ['path', 'host', 'command', 'tool'] as const

const TEXT: JsonSchema = { type: 'string', minLength: 1 }

const PARAMETERS: JsonSchema = {
  type: 'object',
  properties: {
    path: { ...TEXT, description: 'A file or a folder with `/**`.' },
    host: { ...TEXT, description: 'A host name.' },
    command: { ...TEXT, description: 'A shell command: `git status`, or `git log *` with any further words.' },
    tool: { ...TEXT, description: 'The name of a tool.' },
    reason: { ...TEXT, description: 'Why it is needed, for the user.' },
  },
  required: ['reason'],
  additionalProperties: false,
}

const ANSWER: JsonSchema = {
  type: 'object',
  properties: { approved: { type: 'boolean' }, reason: { type: 'string' } },
  required: ['approved'],
  additionalProperties: false,
}

/**
 * The tool `request_access`: the model asks for a permission before it needs it. The pending item has an `AccessRequest` as its
 * payload, and its answer is an `AccessAnswer`. In a session, an approved request is a grant of the thread, which the `policy` of the
 * sessions applies; a folder outside the root of the harness stays out of reach.
 */
export function requestAccess(): ToolSpec {
  return defineTool({
    name: 'request_access',
    description:
      'Ask the user to allow a path, a host, a command or a tool for the rest of the conversation. Exactly one of them.',
    parameters: PARAMETERS,
    annotations: { readOnly: true, openWorld: false },
    sequential: true,
    handler: async (args, { ask }) => {
      const request = args as unknown as Omit<AccessRequest, 'kind'>
      const named = SUBJECTS.filter((subject) => request[subject] !== undefined)
      if (named.length !== 1) return invalidArguments('Expected exactly one of `path`, `host`, `command` and `tool`.')
      const payload: AccessRequest = { kind: 'access', ...request }
      const { approved, reason = '' } = (await ask({ ...payload }, ANSWER)) as unknown as AccessAnswer
      const note = reason === '' ? '' : ` The user says: ${reason}`
      return approved ? `Access is granted.${note}` : `Access is not granted.${note} Continue without it.`
    },
  })
}

/** The conditions of the grant that a request asks for. */
export function requestConditions(request: AccessRequest): Pick<AccessRequest, (typeof SUBJECTS)[number]> {
  const { path, host, command, tool } = request
  return {
    ...(path !== undefined && { path }),
    ...(host !== undefined && { host }),
    ...(command !== undefined && { command }),
    ...(tool !== undefined && { tool }),
  }
}
