/** Address and access rules of a harness that is served over streamable HTTP, at the path `/mcp`. */
export interface McpHttpTransport {
  /** Default 0: any free one. */
  readonly port?: number | undefined
  /** Default `127.0.0.1`. An address that other machines can reach requires a `token`. */
  readonly host?: string | undefined
  /** Clients must send `Authorization: Bearer <token>`. */
  readonly token?: string | undefined
  /** Host names that clients may use, in addition to those of this machine (against DNS rebinding). */
  readonly allowedHosts?: readonly string[] | undefined
}

/** A harness that is being served. */
export interface McpServing extends AsyncDisposable {
  /** Address for clients; null over stdio. */
  readonly url: string | null
  /** Resolves when serving has ended: after `close`, and over stdio when the client has disconnected. Never rejects. */
  readonly closed: Promise<void>
  /** Cancels the runs in progress and stops serving. */
  close(): Promise<void>
}
