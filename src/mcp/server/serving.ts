/** Where and to whom a harness is served over streamable HTTP, at the path `/mcp`. */
export interface McpHttpTransport {
  /** Default 0: any free one. */
  readonly port?: number
  /** Default `127.0.0.1`. Another than this machine's own needs a `token`. */
  readonly host?: string
  /** Clients must send `Authorization: Bearer <token>`. */
  readonly token?: string
  /** Names by which clients may reach the server, beside those of this machine (against DNS rebinding). */
  readonly allowedHosts?: readonly string[]
}

/** A harness that is being served. */
export interface McpServing extends AsyncDisposable {
  /** Where clients reach it; null over stdio. */
  readonly url: string | null
  /** Resolves when it serves no more: after `close`, and over stdio when the client has gone. Never rejects. */
  readonly closed: Promise<void>
  /** Cancels the runs under way and serves no more. */
  close(): Promise<void>
}
