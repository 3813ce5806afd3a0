/** A group of the list of pages. */
export interface PageSection {
  readonly heading: string
  /** `path` is relative to `docs`. */
  readonly pages: readonly { readonly title: string; readonly path: string; readonly summary: string }[]
}

export function sections(): readonly PageSection[]
