/** How many requests there are in `files`, and which of them are not valid and why; undefined without schemas. */
export function checkRequests(files: readonly string[]): Promise<CheckedRequests | undefined>

export interface CheckedRequests {
  readonly checked: number
  readonly refused: readonly { readonly place: string; readonly errors: readonly string[] }[]
}
