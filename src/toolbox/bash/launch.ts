/** How a command was run, for its result. */
export interface Launch {
  readonly command: string
  readonly shell: string
  /** As the model knows it. */
  readonly cwd: string
  readonly sandbox: 'bubblewrap' | 'none'
  /** Why there is no sandbox, where one was wished for. */
  readonly sandboxProblem: string | undefined
}
