import { createHash, timingSafeEqual } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { LOCAL } from '#adapters/ui/handlers/authorization.js'
import { createHandlers } from '#adapters/ui/index.js'
import type { Handlers } from '#adapters/ui/index.js'
import { Sessions } from '#session/index.js'
import type { Modes } from '#session/index.js'
import { CommandError, EXIT } from '../exit-codes.js'
import { openModes, openSetup } from '../setup.js'
import type { RunFlags } from '../setup.js'
import { openRuns } from '../stored-runs.js'
import type { Terminal } from '../terminal/terminal.js'
import { serveLoopback } from './loopback.js'

export interface ServeFlags extends RunFlags {
  readonly port: number
  readonly host?: string
  /** The secret that requests bring; true: that of `$THINHARNESS_AUTH`. */
  readonly auth?: string | true
}

/**
 * `serve`: the agent as a chat page and over HTTP, for this machine. Ends by Ctrl-C or a SIGTERM: runs in progress are left, and can be
 * recovered. Throws a `CommandError` for another host without `--auth`.
 */
export async function serveAgent(flags: ServeFlags, terminal: Terminal): Promise<number> {
  const { host = '127.0.0.1', port } = flags
  const secret = secretOf(flags.auth)
  const isOwn = LOOPBACK.test(host)
  if (!isOwn && secret === null)
    throw new CommandError(
      `\`--host ${host}\` is reached by other machines: give a secret by \`--auth\`, which each request must bring.`,
    )
  const log = await openRuns(flags.runs)
  const setup = await openSetup(flags, log)
  const { harness, options } = setup
  const modes = await openModes(flags, setup)
  const harnesses = new Set([harness, ...Object.values(modes)])
  // A missing key is said now, not to the first person who writes.
  await harness.connect()
  if (options.root !== undefined) terminal.say(`The tools work in ${options.root}.`)
  const sessions = new Sessions<Modes>({ log, modes })
  const handlers = createHandlers({ sessions, authorize: () => LOCAL })
  const page = chatPage()
  const handle = (request: Request, path: string): Response | Promise<Response> =>
    isAllowed(request, secret) ? servedAnswer(request, { path, handlers, page }) : unauthorized()
  const server = await serveLoopback({ handle, host, port, ...(!isOwn && { token: null }) }).catch(
    async (error: unknown) => {
      await harness.close()
      throw error
    },
  )
  terminal.out(`${server.address}\n`)
  terminal.say(`The chat page is there, and for programs ${HANDLERS} below ${server.address}api. Ctrl-C ends it.`)
  const exitCode = await stopped()
  const left = sessions.close()
  await server.close()
  terminal.say('Closing: runs in progress are left, and `thinharness recover` goes on with them.')
  await left
  for (const each of harnesses) await each.close()
  await log.close?.()
  return exitCode
}

const LOOPBACK = /^(?:127(?:\.\d{1,3}){3}|localhost|::1)$/
const HANDLERS = 'chat (AI SDK), agui, responses, threads and runs'
/** A secret that cannot be tried out. */
const SHORTEST_SECRET = 12

function secretOf(given: string | true | undefined): string | null {
  if (given === undefined) return null
  const secret = given === true ? (process.env['THINHARNESS_AUTH'] ?? '') : given
  if (secret.length >= SHORTEST_SECRET) return secret
  throw new CommandError(
    given === true && secret === ''
      ? '`--auth` without a secret takes that of `$THINHARNESS_AUTH`, which is not set.'
      : `Expected the secret of \`--auth\` to have at least ${SHORTEST_SECRET} characters, got ${secret.length}.`,
  )
}

/** The secret as a bearer token, as programs send it, or as a password, for which a browser asks. */
function isAllowed({ headers }: Request, secret: string | null): boolean {
  if (secret === null) return true
  const [, scheme = '', given = ''] = /^(bearer|basic) +(\S+)$/i.exec(headers.get('authorization') ?? '') ?? []
  const isBasic = scheme.toLowerCase() === 'basic'
  const said = isBasic
    ? Buffer.from(given, 'base64')
        .toString()
        .replace(/^[^:]*:/, '')
    : given
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(said), digest(secret))
}

function unauthorized(): Response {
  const headers = { 'www-authenticate': 'Basic realm="thinharness", charset="UTF-8"' }
  return new Response('The secret is missing, or is not the one of this server.\n', { status: 401, headers })
}

interface Served {
  readonly path: string
  readonly handlers: Handlers
  readonly page: string
}

function servedAnswer(request: Request, { path, handlers, page }: Served): Response | Promise<Response> {
  if (path === '/') {
    const headers = { 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-store' }
    return new Response(request.method === 'HEAD' ? null : page, { headers })
  }
  const [, name] = /^\/api\/(.+)$/.exec(path) ?? []
  if (name === undefined) return new Response('There is nothing here.\n', { status: 404 })
  const found = ROUTES.find(([form]) => form.test(name))
  return handlers[found?.[1] ?? 'requests'](request)
}

/** The others are requests as JSON. */
const ROUTES: readonly (readonly [RegExp, keyof Handlers])[] = [
  [/^(?:threads|runs)\/[^/]+\/events$/, 'events'],
  [/^chat(?:\/[^/]+\/stream)?$/, 'aiSdk'],
  [/^agui(?:\/capabilities)?$/, 'agUi'],
  [/^(?:v1\/)?responses(?:\/[^/]+(?:\/cancel)?)?$/, 'responses'],
]

/** The page, with its script and style in it. */
function chatPage(): string {
  const home = dirname(createRequire(import.meta.url).resolve('thinharness/package.json'))
  return readFileSync(join(home, 'dist', 'command', 'chat-page.html'), 'utf8')
}

/** Waits to be ended; once more ends the process at once. */
async function stopped(): Promise<number> {
  const signal = await new Promise<NodeJS.Signals>((resolve) => {
    for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, resolve)
  })
  process.once('SIGINT', () => process.exit(EXIT.interrupted))
  return signal === 'SIGINT' ? EXIT.interrupted : EXIT.done
}
