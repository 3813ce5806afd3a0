import { createHash, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, request as httpRequest } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A server of MCP behind a door that wants a token, and the authorization server that gives them (OAuth 2.1, PKCE). */
export interface GuardedServer extends AsyncDisposable {
  readonly url: string
  /** What was asked of the authorization server, in order: `register`, `authorize read`, `token refresh_token`, … */
  readonly journal: string[]
  /** All tokens that were given, to look for where they must not be. */
  readonly given: string[]
  /** Access tokens are good no longer; with `refresh`, refresh tokens neither. */
  revoke(what?: { readonly refresh: boolean }): void
  /** Calls of tools want this scope from now on. */
  demand(scope: string): void
  /** How requests for new tokens fail from now on: a broken connection, this status, or half an answer. */
  fail(how: 'broken' | 'half' | number | null): void
  /** Other addresses in what the server says of its authorization. */
  lead(authorizationServer: string): void
}

interface Grant {
  readonly clientId: string
  readonly scope: string
}

interface Code extends Grant {
  readonly challenge: string
  readonly redirectUri: string
}

/** `upstream` is where the MCP server itself listens, on this machine. */
export async function guardedServer(upstream: string): Promise<GuardedServer> {
  const door = new Door(new URL(upstream))
  const server = createServer((request, response) => void door.serve(request, response))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  door.origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url: `${door.origin}/mcp`,
    journal: door.journal,
    given: door.given,
    revoke: ({ refresh } = { refresh: false }) => {
      door.access.clear()
      if (refresh) door.refresh.clear()
    },
    demand: (scope) => (door.demanded = scope),
    fail: (how) => (door.failing = how),
    lead: (to) => (door.leading = to),
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise<void>((resolve) => server.close(() => resolve()))
    },
  }
}

class Door {
  origin = ''
  demanded = 'read'
  failing: 'broken' | 'half' | number | null = null
  leading: string | null = null
  readonly journal: string[] = []
  readonly given: string[] = []
  readonly access = new Map<string, Grant>()
  readonly refresh = new Map<string, Grant>()
  readonly #upstream: URL
  readonly #clients = new Set<string>()
  readonly #codes = new Map<string, Code>()

  constructor(upstream: URL) {
    this.#upstream = upstream
  }

  async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '', this.origin)
    const body = await bodyOf(request)
    switch (url.pathname) {
      case '/mcp':
        this.#guard(request, response, body)
        break
      case '/.well-known/oauth-protected-resource/mcp':
        json(response, 200, { resource: `${this.origin}/mcp`, authorization_servers: [this.leading ?? this.origin] })
        break
      case '/.well-known/oauth-authorization-server':
        json(response, 200, this.#metadata())
        break
      case '/register':
        this.#register(response, JSON.parse(body) as object)
        break
      case '/authorize':
        this.#authorize(response, url.searchParams)
        break
      case '/token':
        this.#token(response, new URLSearchParams(body))
        break
      default:
        json(response, 404, {})
    }
  }

  #metadata(): object {
    return {
      issuer: this.origin,
      authorization_endpoint: `${this.origin}/authorize`,
      token_endpoint: `${this.origin}/token`,
      registration_endpoint: `${this.origin}/register`,
      response_types_supported: ['code'],
      grant_types_supported: ['authorization_code', 'refresh_token'],
      code_challenge_methods_supported: ['S256'],
      token_endpoint_auth_methods_supported: ['none'],
      authorization_response_iss_parameter_supported: true,
    }
  }

  #register(response: ServerResponse, metadata: object): void {
    const client_id = randomUUID()
    this.#clients.add(client_id)
    this.journal.push('register')
    json(response, 201, { ...metadata, client_id })
  }

  /** A person who agrees to everything. */
  #authorize(response: ServerResponse, asked: URLSearchParams): void {
    const at = (name: string): string => asked.get(name) ?? ''
    const clientId = at('client_id')
    const isSound =
      this.#clients.has(clientId) && at('response_type') === 'code' && at('code_challenge_method') === 'S256'
    if (!isSound || at('resource') !== `${this.origin}/mcp`) return json(response, 400, { error: 'invalid_request' })
    const code = randomUUID()
    const scope = at('scope')
    this.#codes.set(code, { clientId, scope, challenge: at('code_challenge'), redirectUri: at('redirect_uri') })
    this.journal.push(`authorize ${scope}`)
    const back = new URL(at('redirect_uri'))
    for (const [name, value] of Object.entries({ code, state: at('state'), iss: this.origin })) {
      if (value !== '') back.searchParams.set(name, value)
    }
    response.writeHead(302, { location: back.href }).end()
  }

  #token(response: ServerResponse, asked: URLSearchParams): void {
    const kind = asked.get('grant_type') ?? ''
    if (this.failing !== null) this.journal.push(`token ${kind} failed`)
    if (this.failing === 'broken') return void response.destroy()
    if (typeof this.failing === 'number') return void response.writeHead(this.failing).end('<html>Try later.')
    if (this.failing === 'half') {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': 1000 })
      response.write('{"access_token":')
      return void setImmediate(() => response.destroy())
    }
    const grant = kind === 'refresh_token' ? this.#refreshed(asked) : this.#redeemed(asked)
    this.journal.push(`token ${kind}${grant === undefined ? ' refused' : ''}`)
    if (grant === undefined) return json(response, 400, { error: 'invalid_grant', error_description: 'No such grant.' })
    const [access_token, refresh_token] = [`access-${randomUUID()}`, `refresh-${randomUUID()}`]
    this.access.set(access_token, grant)
    this.refresh.set(refresh_token, grant)
    this.given.push(access_token, refresh_token)
    json(response, 200, { access_token, refresh_token, token_type: 'Bearer', expires_in: 3600, scope: grant.scope })
  }

  #redeemed(asked: URLSearchParams): Grant | undefined {
    const code = this.#codes.get(asked.get('code') ?? '')
    this.#codes.delete(asked.get('code') ?? '')
    if (code === undefined) return undefined
    const isOwn = code.clientId === asked.get('client_id') && code.redirectUri === asked.get('redirect_uri')
    const proof = createHash('sha256')
      .update(asked.get('code_verifier') ?? '')
      .digest('base64url')
    return isOwn && proof === code.challenge ? code : undefined
  }

  /** A refresh token is good once. */
  #refreshed(asked: URLSearchParams): Grant | undefined {
    const token = asked.get('refresh_token') ?? ''
    const grant = this.refresh.get(token)
    this.refresh.delete(token)
    return grant?.clientId === asked.get('client_id') ? grant : undefined
  }

  #guard(request: IncomingMessage, response: ServerResponse, body: string): void {
    const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1] ?? ''
    const grant = this.access.get(token)
    const where = `resource_metadata="${this.origin}/.well-known/oauth-protected-resource/mcp"`
    if (grant === undefined) {
      return json(response, 401, {}, { 'www-authenticate': `Bearer ${where}, scope="read"` })
    }
    const scopes = grant.scope.split(' ')
    if (body.includes('"tools/call"') && !scopes.includes(this.demanded)) {
      const wanted = `error="insufficient_scope", scope="read ${this.demanded}"`
      return json(response, 403, {}, { 'www-authenticate': `Bearer ${wanted}, ${where}` })
    }
    this.#pass(request, response, body)
  }

  #pass(request: IncomingMessage, response: ServerResponse, body: string): void {
    const { authorization: _, ...headers } = request.headers
    const { host, hostname, port, pathname } = this.#upstream
    const onward = httpRequest(
      { hostname, port, path: pathname, method: request.method, headers: { ...headers, host } },
      (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers)
        answer.pipe(response)
      },
    )
    onward.on('error', () => response.destroy())
    response.on('close', () => onward.destroy())
    onward.end(body)
  }
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let body = ''
  for await (const piece of request) body += String(piece)
  return body
}

function json(response: ServerResponse, status: number, body: object, headers: Record<string, string> = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
}
