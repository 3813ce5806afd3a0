import { runLogContract } from 'thinharness/testing'
import { KeyValueLog } from './store.js'
import type { Database } from './store.js'

/** The laws of the contract that apply to a `RunLog`, for any test runner. */
export function laws(newDatabase: () => Database) {
  const databases = new WeakMap<KeyValueLog, Database>()
  const open = (database: Database): KeyValueLog => {
    const log = new KeyValueLog(database)
    databases.set(log, database)
    return log
  }
  return runLogContract({
    open: () => open(newDatabase()),
    reopen: (log) => open(databases.get(log) ?? newDatabase()),
    without: [
      // Laws of a `LogStore`: threads, inbox, listing and pruning.
      ...(['separates_kinds', 'owns_threads', 'follows'] as const),
      ...([
        'delivers_posts_once',
        'gives_posts_to_the_owner',
        'keeps_posts_of_lost_owners',
        'keeps_posts_until_named',
      ] as const),
      ...([
        'tells_how_runs_stand',
        'computes_missing_digests',
        'exports_runs',
        'lists_newest_first',
        'lists_threads',
      ] as const),
      ...(['finds_by_labels', 'lists_what_has_changed', 'misses_no_append', 'gives_what_waits'] as const),
      ...([
        'prunes_what_has_ended',
        'keeps_what_is_queued',
        'keeps_what_is_referred_to',
        'names_referrers',
        'removes_by_name',
        'removes_for_its_owner',
      ] as const),
    ],
  })
}
