/** Where runs are kept, unless `--runs` says so. */
export const DEFAULT_RUNS = '.thinharness/runs'
