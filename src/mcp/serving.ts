/** A harness that is being served. */
export interface McpServing extends AsyncDisposable {
  /** Where clients reach it; null over stdio. */
  readonly url: string | null
  /** Cancels the runs under way and serves no more. */
  close(): Promise<void>
}
