import { storeFailure } from '#core/log/log.js'
import type { LogStore } from '#core/log/log.js'
import { nameOf } from '#core/log/ref.js'

/** A store whose errors have codes: whatever a store of the host's own throws is a `store_failure`. */
export function codedLog(log: LogStore): LogStore {
  return {
    outlives: log.outlives,
    append: (ref, ...rest) => coded(`store an event of ${nameOf(ref)}`, () => log.append(ref, ...rest)),
    claim: (ref, ...rest) => coded(`claim ${nameOf(ref)}`, () => log.claim(ref, ...rest)),
    post: (ref, post) => coded(`take a post to ${nameOf(ref)}`, () => log.post(ref, post)),
    takePosts: (ref, owner) => coded(`give the posts to ${nameOf(ref)}`, () => log.takePosts(ref, owner)),
    inspect: (ref) => coded(`read ${nameOf(ref)}`, () => log.inspect(ref)),
    prune: (options) => coded('remove logs', () => log.prune(options)),
    read: (ref, options) => codedItems(`read ${nameOf(ref)}`, () => log.read(ref, options)),
    list: (options) => codedItems('list its logs', () => log.list(options)),
    waiting: (options) => coded('list its logs', () => log.waiting(options)),
    export: (runId) => codedItems(`read run \`${runId}\``, () => log.export(runId)),
    ...(log.follow !== undefined && {
      follow: (ref, options) => codedItems(`read ${nameOf(ref)}`, () => log.follow?.(ref, options) as never),
    }),
    ...(log.referrers !== undefined && {
      referrers: (ref) =>
        coded(`read the references to ${nameOf(ref)}`, async () => (await log.referrers?.(ref)) ?? []),
    }),
  }
}

async function coded<T>(act: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw storeFailure(act, error)
  }
}

/** Without a generator of its own: a conversation has thousands of events. */
function codedItems<Item>(act: string, read: () => AsyncIterable<Item>): AsyncIterable<Item> {
  return {
    [Symbol.asyncIterator]() {
      let items: AsyncIterator<Item> | null = null
      return {
        next: () => coded(act, async () => (items ??= read()[Symbol.asyncIterator]()).next()),
        async return() {
          await items?.return?.()
          return { done: true, value: undefined }
        },
      }
    },
  }
}
