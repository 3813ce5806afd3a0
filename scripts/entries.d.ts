export interface PackageEntry {
  /** The specifier of an import, such as `thinharness/tools`. */
  readonly specifier: string
  /** Below `src` and `dist`, without an ending. */
  readonly name: string
  readonly source: string
  readonly output: string
}

export declare const entries: readonly PackageEntry[]

/** package.json, as far as builds ask. */
export declare const manifest: {
  readonly dependencies: Readonly<Record<string, string>>
  readonly optionalDependencies: Readonly<Record<string, string>>
}
